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
