import numpy as np
import pytest

from images import fill, save
from tigranet.data.find_images import image_files
from tigranet.data.folder_index import index_folder


def test_every_sub_folder_is_a_class(tmp_path):
    fill(tmp_path, {"b": 3, "a": 2})
    save(tmp_path / "a" / "deeper" / "x.jpg", np.zeros((4, 4), np.uint8))
    (tmp_path / "a" / "notes.txt").write_text("no image")
    (tmp_path / "a" / ".hidden.png").write_text("no image")
    (tmp_path / ".cache").mkdir()
    index = index_folder(tmp_path)
    assert index.class_names == ("a", "b")
    assert [(path.name, label) for path, label in zip(index.paths, index.labels, strict=True)] == [
        ("000.png", 0), ("001.png", 0), ("x.jpg", 0), ("000.png", 1), ("001.png", 1), ("002.png", 1),
    ]  # fmt: skip
    assert set(index.parts) == {""}
    assert index.groups is None
    assert len(list(image_files(tmp_path))) == 6


def test_sub_folders_may_be_parts(tmp_path):
    for part, count in (("Train", 3), ("valid", 2), ("test", 1)):
        fill(tmp_path / part, {"a": count, "b": count})
    index = index_folder(tmp_path)
    assert index.class_names == ("a", "b")
    assert {part: index.parts.count(part) for part in set(index.parts)} == {"train": 6, "validation": 4, "test": 2}


@pytest.mark.parametrize(("pattern", "expected"), [(r"\d+", ("000", "001")), (r"(\w)/\d+", ("a", "b"))])
def test_a_regular_expression_finds_the_groups(tmp_path, pattern, expected):
    fill(tmp_path, {"a": 2, "b": 2})
    assert tuple(sorted(set(index_folder(tmp_path, pattern).groups))) == expected


@pytest.mark.parametrize("files", [("config.json", "model.safetensors"), ("checkpoints/last.ckpt",)])
def test_a_saved_model_is_not_a_class_and_its_pictures_are_skipped(tmp_path, files):
    fill(tmp_path, {"b": 3, "a": 2})
    save(tmp_path / "model" / "rotated.png", np.zeros((4, 4), np.uint8))
    assert index_folder(tmp_path).class_names == ("a", "b", "model")
    for name in files:
        (tmp_path / "model" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "model" / name).write_text("")
    assert index_folder(tmp_path).class_names == ("a", "b")
    assert len(list(image_files(tmp_path))) == 5
    assert len(list(image_files(tmp_path / "model"))) == 1  # an explicit request for this folder


def test_the_error_names_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        index_folder(tmp_path / "missing")


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (("val", "test"), ("val", "test")),
        (("validation", "Test"), ("validation", "Test")),
        (("test",), ("test",)),
        (("cat", "dog", "test"), ("test",)),
    ],
)
def test_parts_without_training_images_are_refused(tmp_path, folders, names):
    for name in folders:
        fill(tmp_path / name, {"a": 2, "b": 2})
    with pytest.raises(ValueError, match="no folder 'train'") as error:
        index_folder(tmp_path)
    assert all(f"'{name}'" in str(error.value) for name in (*names, tmp_path))


def test_images_directly_in_the_parts_without_training_images_are_refused(tmp_path):
    fill(tmp_path, {"val": 2, "test": 2, "cat": 2})
    with pytest.raises(ValueError, match="'test' and 'val' but no folder 'train'"):
        index_folder(tmp_path)


def test_a_class_may_have_the_name_of_a_part(tmp_path):
    fill(tmp_path, {"valid": 2, "invalid": 2})
    assert index_folder(tmp_path).class_names == ("invalid", "valid")
    fill(tmp_path / "other" / "train", {"test": 2, "val": 2})
    assert index_folder(tmp_path / "other").class_names == ("test", "val")


@pytest.mark.parametrize(
    "folders",
    [
        ("TRAIN", "train"),
        ("train ", "train"),
        ("val", "validation"),
        ("Val", "val"),
        ("valid", "val"),
        ("test", "TEST"),
    ],
)
def test_two_folders_for_one_part_are_refused(tmp_path, folders):
    for name in {*folders, "train"}:
        (tmp_path / name / "a").mkdir(parents=True, exist_ok=True)
    if len(list(tmp_path.iterdir())) < len({*folders, "train"}):
        pytest.skip("the file system ignores case or white space")
    with pytest.raises(ValueError, match="two folders for the part") as error:
        index_folder(tmp_path)
    assert all(f"'{name}'" in str(error.value) for name in (*folders, tmp_path))


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        ("train/cat", "train/cat ", r"'cat' and 'cat '"),
        ("train/cat", "test/ cat", r"' cat' and 'cat'"),
        ("train/caf\u00e9", "val/cafe\u0301", r"cafe\\u0301' and 'caf\\xe9"),
        ("train/Cat", "val/cat", r"'cat'.*no training images.*'Cat' and 'cat'"),
    ],
)
def test_two_spellings_of_one_class_are_refused(tmp_path, first, second, values):
    for name in (first, second, "train/dog"):
        fill((tmp_path / name).parent, {(tmp_path / name).name: 2})
    if len({path.name for path in tmp_path.glob("*/*")}) < 3:
        pytest.skip("the file system changes names")
    with pytest.raises(ValueError, match=values):
        index_folder(tmp_path)


def test_classes_that_differ_by_case_are_two_classes(tmp_path):
    fill(tmp_path, {"a": 2, "A": 2})
    if len(list(tmp_path.iterdir())) == 2:
        assert index_folder(tmp_path).class_names == ("A", "a")
