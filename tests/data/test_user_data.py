import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from images import fill, save
from tigranet.data import Isometry, load_user_data
from tigranet.data.letterbox import MAX_DEFAULT_SIZE
from tigranet.data.user_data import is_user_data, read_user_images


def test_the_random_split_is_stratified_complete_and_repeatable(tmp_path):
    fill(tmp_path, {"a": 40, "b": 20, "c": 3})
    data, unreadable = load_user_data(tmp_path, seed=1)
    assert unreadable == []
    assert data.test_motion == Isometry(rotated=True, padding="reflection")
    assert [torch.bincount(part.labels).tolist() for part in (data.train, data.validation, data.test)] == [
        [28, 14, 1], [6, 3, 1], [6, 3, 1],
    ]  # fmt: skip
    images = torch.cat([data.train.images, data.validation.images, data.test.images]).flatten(1)
    assert len(torch.unique(images, dim=0)) == 63
    repeated, _ = load_user_data(tmp_path, seed=1)
    other, _ = load_user_data(tmp_path, seed=2)
    assert torch.equal(repeated.test.images, data.test.images)
    assert not torch.equal(other.test.images, data.test.images)


def test_parts_in_the_folder_are_used_and_a_missing_validation_part_is_drawn(tmp_path):
    for part, count in (("train", 10), ("val", 3), ("test", 4)):
        fill(tmp_path / part, {"a": count, "b": count}, seed=count)
    data, _ = load_user_data(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [20, 6, 8]
    shutil.rmtree(tmp_path / "val")
    data, _ = load_user_data(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [16, 4, 8]


def test_small_square_images_of_one_size_are_unchanged(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)
    fill(tmp_path, {"a": 3, "b": 3})
    save(tmp_path / "a" / "000.png", pixels)
    data, _ = load_user_data(tmp_path)
    images = torch.cat([data.train.images, data.validation.images, data.test.images])
    assert images.shape == (6, 1, 12, 12)
    assert any(torch.equal(image[0], torch.from_numpy(pixels).float() / 255) for image in images)


@pytest.mark.parametrize(("shape", "expected"), [((12, 12), 12), ((300, 100), MAX_DEFAULT_SIZE), ((20, 30), 30)])
def test_the_default_size_is_the_median_longer_side_up_to_a_limit(tmp_path, shape, expected):
    fill(tmp_path, {"a": 3, "b": 3}, size=shape)
    assert load_user_data(tmp_path)[0].train.images.shape[2:] == (expected, expected)
    assert load_user_data(tmp_path, size=10)[0].train.images.shape[2:] == (10, 10)


def test_the_largest_default_size_can_be_changed(tmp_path):
    fill(tmp_path / "files", {"a": 3, "b": 3}, size=(40, 90))
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).random((6, 40, 90)), y=[0, 1] * 3)
    for path in (tmp_path / "files", tmp_path / "a.npz"):
        for max_size, expected in ((30, 30), (100, 90)):
            assert load_user_data(path, max_size=max_size)[0].train.images.shape[2:] == (expected, expected)
        assert load_user_data(path, size=50, max_size=30)[0].train.images.shape[2:] == (50, 50)


def test_unreadable_files_are_skipped_and_reported(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    (tmp_path / "a" / "003.png").write_bytes(b"")
    (tmp_path / "b" / "007.png").write_bytes(b"not an image")
    data, unreadable = load_user_data(tmp_path)
    assert [file.path.name for file in unreadable] == ["003.png", "007.png"]
    assert "empty" in unreadable[0].reason
    assert "not an image" in unreadable[1].reason
    assert sum(len(part.labels) for part in (data.train, data.validation, data.test)) == 18


def test_colour_is_optional_and_grey_images_are_repeated_among_images_in_colour(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        for number in range(4):
            save(tmp_path / name / f"{number}.png", rng.integers(0, 256, (8, 8, 3), np.uint8))
    assert load_user_data(tmp_path)[0].train.images.shape[1] == 1
    assert load_user_data(tmp_path, color=True)[0].train.images.shape[1] == 3
    save(tmp_path / "a" / "grey.png", np.zeros((8, 8), np.uint8))
    data, _ = load_user_data(tmp_path, color=True)
    images = torch.cat([part.images for part in (data.train, data.validation, data.test)])
    assert images.shape[1] == 3
    assert sum(not image.any() for image in images) == 1


def save_objects(folder, count=6, views=5):
    """Save views of objects. The object can be recognised by the pixels and by the file name."""
    for label, name in enumerate(("nut", "bolt")):
        for number in range(count):
            for view in range(views):
                save(folder / name / f"{name}{number}-{view}.png", np.full((8, 8), 100 * label + 10 * number, np.uint8))
    return folder


def objects_in(part):
    return {round(float(image.mean()) * 255) for image in part.images}


def test_images_of_one_group_stay_in_one_part(tmp_path):
    data, _ = load_user_data(save_objects(tmp_path), group=r"([a-z]+\d+)-")
    parts = [data.train, data.validation, data.test]
    assert sum(len(part.labels) for part in parts) == 60
    assert sum(len(objects_in(part)) for part in parts) == 12  # 12 objects, each in one part
    assert all(len(part.labels.unique()) == 2 for part in parts)
    other, _ = load_user_data(tmp_path, seed=3, group=r"([a-z]+\d+)-")
    assert objects_in(other.test) != objects_in(data.test)


def test_with_a_number_of_training_images_all_others_are_test_images(tmp_path):
    fill(tmp_path, {"a": 20, "b": 10})
    data, _ = load_user_data(tmp_path, train_images=9)
    assert torch.bincount(data.train.labels).tolist() == [6, 3]
    assert len(data.validation.labels) == 0
    assert torch.bincount(data.test.labels).tolist() == [14, 7]
    images = torch.cat([data.train.images, data.test.images]).flatten(1)
    assert len(torch.unique(images, dim=0)) == 30


@pytest.mark.parametrize("arguments", [{"group": r"\d+"}, {}])
def test_a_number_of_training_images_excludes_groups_and_parts(tmp_path, arguments):
    folder = tmp_path if arguments else tmp_path / "train"
    fill(folder, {"a": 20, "b": 10})
    with pytest.raises(ValueError, match=r"parts and groups"):
        load_user_data(tmp_path, train_images=9, **arguments)


def test_a_folder_a_table_and_arrays_give_the_same_data(tmp_path):
    folder = fill(tmp_path / "photos", {"a": 8, "b": 8})
    paths = sorted(folder.rglob("*.png"))
    rows = [f"photos/{path.relative_to(folder).as_posix()},{path.parent.name}" for path in paths]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]))
    expected, _ = load_user_data(folder, seed=1)
    pixels = torch.cat([expected.train.images, expected.validation.images, expected.test.images])
    labels = torch.cat([expected.train.labels, expected.validation.labels, expected.test.labels])
    order = np.lexsort(pixels.flatten(1).numpy().T)
    np.savez(tmp_path / "arrays.npz", x=(pixels[:, 0] * 255).byte().numpy(), y=np.array(["a", "b"])[labels])
    for path in (tmp_path / "table.csv", tmp_path / "arrays.npz"):
        data, unreadable = load_user_data(path, seed=1)
        assert unreadable == []
        assert data.class_names == ("a", "b")
        images = torch.cat([data.train.images, data.validation.images, data.test.images])
        assert torch.equal(images[np.lexsort(images.flatten(1).numpy().T)], pixels[order])
    assert torch.equal(load_user_data(tmp_path / "table.csv", seed=1)[0].test.images, expected.test.images)


def test_every_test_image_has_its_file(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    (tmp_path / "a" / "003.png").write_bytes(b"")
    data, _ = load_user_data(tmp_path)
    for image, file in zip(data.test.images, data.test_files, strict=True):
        assert torch.equal(image[0], torch.from_numpy(np.asarray(Image.open(file)).copy()) / 255)


def test_large_data_sets_are_the_same_on_disk_as_in_memory(tmp_path, monkeypatch):
    fill(tmp_path, {"a": 20, "b": 20})
    expected, _ = load_user_data(tmp_path)
    monkeypatch.setattr("tigranet.data.mapped_images.MAX_BYTES_IN_MEMORY", 1000)
    data, _ = load_user_data(tmp_path)
    for part in ("train", "validation", "test"):
        assert torch.equal(getattr(data, part).images, getattr(expected, part).images)
        assert torch.equal(getattr(data, part).labels, getattr(expected, part).labels)


def test_user_data_are_folders_tables_and_npz_files(tmp_path):
    assert is_user_data(tmp_path)
    assert is_user_data(tmp_path / "a.CSV")
    assert is_user_data(tmp_path / "a.npz")
    assert not is_user_data(tmp_path / "mnist-012")


@pytest.mark.parametrize(
    ("counts", "arguments", "values"),
    [
        ({}, {}, "at least 2 sub-folders.*got 0"),
        ({"a": 5}, {}, "at least 2 sub-folders.*got 1"),
        ({"a": 5, "b": 2}, {}, "at least 3 .*'b', got 2: .*--train-images"),
        ({"a": 5, "b": 0}, {}, r"'b'.*no training images.*\.png"),
        ({"a": 5, "b": 5}, {"train_images": 1}, "2 to 9 .*10 images of 2 classes.*got 1"),
        ({"a": 5, "b": 5}, {"train_images": 10}, "2 to 9 .*10 images of 2 classes.*got 10"),
        ({"a": 5, "b": 5}, {"group": "x"}, r"'x'.*'a/000\.png'"),
        ({"a": 5, "b": 5}, {"group": "("}, r"'\(' is not a regular expression"),
        ({"a": 5, "b": 5}, {"group": "^."}, "at least 3 groups.*'a'.*got 1"),
        ({"a": 1, "b": 1}, {"train_images": 2}, "2 images of 2 classes"),
    ],
)
def test_the_error_for_an_unusable_folder_names_the_cause(tmp_path, counts, arguments, values):
    fill(tmp_path, counts)
    for name in counts:
        (tmp_path / name).mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=values):
        load_user_data(tmp_path, **arguments)


def test_the_error_names_a_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        load_user_data(tmp_path / "missing")


def test_a_folder_without_readable_images_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a/x\.png.*empty"):
        load_user_data(tmp_path)


def test_a_group_in_two_parts_is_refused(tmp_path):
    for part in ("train", "test"):
        save_objects(tmp_path / part)
    with pytest.raises(ValueError, match=r"'(nut|bolt)\d' is in two parts, (train and test|test and train)"):
        load_user_data(tmp_path, group=r"([a-z]+\d+)-")


def save_table(folder, parts):
    """Save one image per entry of ``parts[class_name]``, and a table that assigns it to this part."""
    fill(folder, {name: len(class_parts) for name, class_parts in parts.items()})
    rows = [f"{name}/{number:03d}.png,{name},{part}" for name in parts for number, part in enumerate(parts[name])]
    (folder / "table.csv").write_text("\n".join(["path,label,part", *rows]))
    return folder / "table.csv"


@pytest.mark.parametrize(
    ("parts", "values"),
    [
        ({"a": ["val", "test"], "b": ["test"]}, r"table\.csv.*train, only in test and validation"),
        ({"a": ["train"] * 3, "b": ["test"] * 3}, r"'b' of '.*table\.csv'.*in the part train"),
        ({"a": ["train", "val"], "b": ["val"]}, r"'b' of '.*table\.csv'.*in the part train"),
        ({"a": ["train"] * 3, "b": ["train"]}, r"at least 2 .*'b', got 1: .*val"),
    ],
)
def test_the_error_for_a_table_without_training_images_names_the_class_or_part(tmp_path, parts, values):
    with pytest.raises(ValueError, match=values):
        load_user_data(save_table(tmp_path, parts))


def test_the_error_names_a_class_without_readable_images(tmp_path):
    fill(tmp_path, {"a": 5, "b": 1})
    (tmp_path / "b" / "000.png").write_bytes(b"")
    for arguments in ({}, {"train_images": 3}):
        with pytest.raises(ValueError, match=r"'b' of '.*no readable image"):
            load_user_data(tmp_path, **arguments)


def test_a_data_set_has_the_name_of_its_folder_or_file(tmp_path, monkeypatch):
    folder = fill(tmp_path / "dotted.v1.2", {"a": 3, "b": 3})
    assert load_user_data(folder)[0].name == "dotted.v1.2"
    assert load_user_data(save_table(tmp_path, {"a": ["train"] * 3, "b": ["train"] * 3}))[0].name == "table"
    monkeypatch.chdir(folder)
    assert load_user_data(Path())[0].name == "dotted.v1.2"


PARTS_WITHOUT_TEST = [("train", "val"), ("train",)]


def save_parts(folder, form, parts, count=6):
    """Save ``count`` images per class for each part, as a folder, a table or an .npz file, and return the path."""
    for number, part in enumerate(parts):
        fill(folder / "photos" / part, {"a": count, "b": count}, seed=number)
    paths = sorted((folder / "photos").rglob("*.png"))
    if form == "folder":
        return folder / "photos"
    if form == "table":
        rows = [f"{path.relative_to(folder).as_posix()},{path.parts[-2]},{path.parts[-3]}" for path in paths]
        (folder / "table.csv").write_text("\n".join(["path,label,part", *rows]))
        return folder / "table.csv"
    arrays = {}
    for part in parts:
        members = [path for path in paths if path.parts[-3] == part]
        arrays[f"x_{part}"] = np.stack([np.asarray(Image.open(path)) for path in members])
        arrays[f"y_{part}"] = np.array([path.parts[-2] for path in members])
    np.savez(folder / "arrays.npz", **arrays)
    return folder / "arrays.npz"


@pytest.mark.parametrize("form", ["folder", "table", "arrays"])
@pytest.mark.parametrize("parts", PARTS_WITHOUT_TEST)
def test_without_a_test_part_there_are_no_test_images(tmp_path, form, parts):
    data, _ = load_user_data(save_parts(tmp_path, form, parts))
    assert data.test.images.shape == (0, 1, 12, 12)
    assert data.test.labels.shape == (0,)
    assert data.test.labels.dtype == data.train.labels.dtype
    assert data.test_files == (None if form == "arrays" else ())
    assert data.untested_classes == ("a", "b")
    assert len(data.train.labels) + len(data.validation.labels) == 12 * len(parts)
    assert len(data.validation.labels) == (12 if "val" in parts else 2)


@pytest.mark.parametrize("form", ["folder", "table", "arrays"])
@pytest.mark.parametrize("parts", [("val", "test"), ("test",), ("val",)])
def test_parts_without_train_are_refused(tmp_path, form, parts):
    path = save_parts(tmp_path, form, parts)
    with pytest.raises(ValueError, match="train") as error:
        load_user_data(path)
    assert str(path) in str(error.value)


def test_a_test_part_without_readable_images_is_no_test_part(tmp_path):
    path = save_parts(tmp_path, "folder", ("train", "val", "test"), count=3)
    for file in (path / "test").rglob("*.png"):
        file.write_bytes(b"")
    data, unreadable = load_user_data(path)
    assert len(unreadable) == 6
    assert len(data.test.labels) == 0


def test_a_class_with_a_single_image_is_trained_on_and_named_as_untested(tmp_path):
    fill(tmp_path, {"a": 20, "b": 1, "c": 2})
    data, _ = load_user_data(tmp_path, train_images=4)
    assert torch.bincount(data.train.labels).tolist() == [2, 1, 1]
    assert data.untested_classes == ("b",)


@pytest.mark.parametrize("names", [("caf\u00e9", "cafe\u0301"), ("cat", "cat "), ("cat", "cat")])
def test_two_spellings_of_one_class_in_an_npz_file_are_refused(tmp_path, names):
    path = tmp_path / "arrays.npz"
    images = np.arange(9 * 64, dtype=np.uint16).reshape(9, 8, 8)
    np.savez(path, images=images, labels=np.arange(9) % 3, class_names=["dog", *names])
    with pytest.raises(ValueError, match="same name") as error:
        load_user_data(path)
    assert str(path) in str(error.value)
    np.savez(path, images=images, labels=np.array(["dog", *names])[np.arange(9) % 3])
    if len(set(names)) == 2:
        with pytest.raises(ValueError, match="same name"):
            load_user_data(path)


def test_two_spellings_of_one_class_in_a_table_are_refused_before_images_are_read(tmp_path):
    rows = ["path,label", *(f"missing{number}.png,{name}" for number, name in enumerate(["e\u0301", "\u00e9"] * 3))]
    (tmp_path / "table.csv").write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(ValueError, match=r"table\.csv.*same name"):
        load_user_data(tmp_path / "table.csv")


def test_white_space_around_the_labels_and_parts_of_a_table_is_ignored(tmp_path):
    fill(tmp_path, {"a": 6, "b": 6})
    rows = [
        f"{name}/00{number}.png,{label},{part}"
        for name, labels in (("a", [" a", "a", "a\t"] * 2), ("b", ["b ", "b", "b"] * 2))
        for number, (label, part) in enumerate(
            zip(labels, ["train", "TRAIN ", "Val", " valid", "test", "test"], strict=True)
        )
    ]
    (tmp_path / "table.csv").write_text("\n".join(["path,label,part", *rows]))
    data, _ = load_user_data(tmp_path / "table.csv")
    assert data.class_names == ("a", "b")
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [4, 4, 4]


def test_all_images_are_read_whatever_their_part(tmp_path):
    for part in ("train", "test"):
        fill(tmp_path / part, {"a": 3, "b": 2}, size=(7, 5))
    (tmp_path / "train" / "a" / "099.png").write_bytes(b"")
    images = read_user_images(tmp_path, size=6, group=r"\d+")
    assert images.images.images.shape == (10, 1, 6, 6)
    assert [images.class_names[label] for label in images.images.labels.tolist()] == [
        path.parent.name for path in images.paths
    ]
    assert sorted(images.parts) == ["test"] * 5 + ["train"] * 5
    assert images.groups == tuple(path.stem for path in images.paths)
    assert [file.path.name for file in images.unreadable] == ["099.png"]
