from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from images import fill, save
from tigranet.data import Isometry, load_user_data
from tigranet.data.user_data import is_user_data


def test_the_split_is_stratified_repeatable_and_whole(tmp_path):
    fill(tmp_path, {"a": 40, "b": 20, "c": 3})
    data, broken = load_user_data(tmp_path, seed=1)
    assert broken == []
    assert data.test_motion == Isometry(rotated=True, padding="reflection")
    assert [torch.bincount(part.labels).tolist() for part in (data.train, data.validation, data.test)] == [
        [28, 14, 1], [6, 3, 1], [6, 3, 1],
    ]  # fmt: skip
    every = torch.cat([data.train.images, data.validation.images, data.test.images]).flatten(1)
    assert len(torch.unique(every, dim=0)) == 63
    again, _ = load_user_data(tmp_path, seed=1)
    other, _ = load_user_data(tmp_path, seed=2)
    assert torch.equal(again.test.images, data.test.images)
    assert not torch.equal(other.test.images, data.test.images)


def test_parts_of_its_own_are_kept(tmp_path):
    for part, count in (("train", 10), ("val", 3), ("test", 4)):
        fill(tmp_path / part, {"a": count, "b": count}, seed=count)
    data, _ = load_user_data(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [20, 6, 8]
    for path in sorted((tmp_path / "val").rglob("*.png")):
        path.unlink()
    for path in ((tmp_path / "val" / "a"), (tmp_path / "val" / "b"), (tmp_path / "val")):
        path.rmdir()
    data, _ = load_user_data(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [16, 4, 8]


def test_images_of_one_small_size_are_left_as_they_are(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)
    fill(tmp_path, {"a": 3, "b": 3})
    save(tmp_path / "a" / "000.png", pixels)
    data, _ = load_user_data(tmp_path)
    images = torch.cat([data.train.images, data.validation.images, data.test.images])
    assert images.shape == (6, 1, 12, 12)
    assert any(torch.equal(image[0], torch.from_numpy(pixels).float() / 255) for image in images)


@pytest.mark.parametrize(("shape", "wanted"), [((12, 12), 12), ((200, 100), 64), ((20, 30), 30)])
def test_the_size_is_the_median_longer_side_at_most_64(tmp_path, shape, wanted):
    fill(tmp_path, {"a": 3, "b": 3}, size=shape)
    assert load_user_data(tmp_path)[0].train.images.shape[2:] == (wanted, wanted)
    assert load_user_data(tmp_path, size=10)[0].train.images.shape[2:] == (10, 10)


def test_broken_files_are_left_out_and_named(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    (tmp_path / "a" / "003.png").write_bytes(b"")
    (tmp_path / "b" / "007.png").write_bytes(b"not an image")
    data, broken = load_user_data(tmp_path)
    assert [(file.path.name, file.reason) for file in broken] == [
        ("003.png", "the file is empty"),
        ("007.png", "not an image of a kind that is read here"),
    ]
    assert sum(len(part.labels) for part in (data.train, data.validation, data.test)) == 18


def test_colour_is_asked_for(tmp_path):
    for name in ("a", "b"):
        for number in range(4):
            save(tmp_path / name / f"{number}.png", np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8))
    assert load_user_data(tmp_path)[0].train.images.shape[1] == 1
    assert load_user_data(tmp_path, color=True)[0].train.images.shape[1] == 3
    save(tmp_path / "a" / "grey.png", np.zeros((8, 8), np.uint8))
    with pytest.raises(ValueError, match=r"'.*grey.png' has 1 channels, '.*0.png' has 3: leave out --color"):
        load_user_data(tmp_path, color=True)


def objects(folder, count=6, views=5):
    """Views of objects: pixels tell the object, names too."""
    for label, name in enumerate(("nut", "bolt")):
        for number in range(count):
            for view in range(views):
                save(folder / name / f"{name}{number}-{view}.png", np.full((8, 8), 100 * label + 10 * number, np.uint8))
    return folder


def values(part):
    return {round(float(image.mean()) * 255) for image in part.images}


def test_the_views_of_an_object_stay_together(tmp_path):
    data, _ = load_user_data(objects(tmp_path), group=r"([a-z]+\d+)-")
    parts = [data.train, data.validation, data.test]
    assert sum(len(part.labels) for part in parts) == 60
    assert sum(len(values(part)) for part in parts) == 12  # 12 objects, each in one part
    assert all(len(part.labels.unique()) == 2 for part in parts)
    other, _ = load_user_data(tmp_path, seed=3, group=r"([a-z]+\d+)-")
    assert values(other.test) != values(data.test)


def test_a_number_of_images_trains_and_all_others_test(tmp_path):
    fill(tmp_path, {"a": 20, "b": 10})
    data, _ = load_user_data(tmp_path, train_images=9)
    assert torch.bincount(data.train.labels).tolist() == [6, 3]
    assert len(data.validation.labels) == 0
    assert torch.bincount(data.test.labels).tolist() == [14, 7]
    every = torch.cat([data.train.images, data.test.images]).flatten(1)
    assert len(torch.unique(every, dim=0)) == 30


def test_a_table_and_arrays_say_the_same_as_the_folder(tmp_path):
    folder = fill(tmp_path / "photos", {"a": 8, "b": 8})
    paths = sorted(folder.rglob("*.png"))
    rows = [f"photos/{path.relative_to(folder).as_posix()},{path.parent.name}" for path in paths]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]))
    wanted, _ = load_user_data(folder, seed=1)
    pixels = torch.cat([wanted.train.images, wanted.validation.images, wanted.test.images])
    labels = torch.cat([wanted.train.labels, wanted.validation.labels, wanted.test.labels])
    order = np.lexsort(pixels.flatten(1).numpy().T)
    np.savez(tmp_path / "arrays.npz", x=(pixels[:, 0] * 255).byte().numpy(), y=np.array(["a", "b"])[labels])
    for path in (tmp_path / "table.csv", tmp_path / "arrays.npz"):
        data, broken = load_user_data(path, seed=1)
        assert broken == []
        assert data.class_names == ("a", "b")
        found = torch.cat([data.train.images, data.validation.images, data.test.images])
        again = np.lexsort(found.flatten(1).numpy().T)
        assert torch.equal(found[again], pixels[order])
    assert torch.equal(load_user_data(tmp_path / "table.csv", seed=1)[0].test.images, wanted.test.images)


def test_the_files_of_the_test_images_are_known(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    (tmp_path / "a" / "003.png").write_bytes(b"")
    data, _ = load_user_data(tmp_path)
    for image, file in zip(data.test.images, data.test_files, strict=True):
        assert torch.equal(image[0], torch.from_numpy(np.asarray(Image.open(file)).copy()) / 255)


def test_very_many_images_are_the_same_on_disk(tmp_path, monkeypatch):
    fill(tmp_path, {"a": 20, "b": 20})
    wanted, _ = load_user_data(tmp_path)
    monkeypatch.setattr("tigranet.data.user_data.IN_MEMORY", 1000)
    found, _ = load_user_data(tmp_path)
    for part in ("train", "validation", "test"):
        assert torch.equal(getattr(found, part).images, getattr(wanted, part).images)
        assert torch.equal(getattr(found, part).labels, getattr(wanted, part).labels)


def test_what_can_be_read_is_told_by_its_name(tmp_path):
    assert is_user_data(tmp_path)
    assert is_user_data(tmp_path / "a.CSV")
    assert is_user_data(tmp_path / "a.npz")
    assert not is_user_data(tmp_path / "mnist-012")


@pytest.mark.parametrize(
    ("counts", "arguments", "message"),
    [
        ({}, {}, "has one sub-folder for each class, at least 2, '.*' has 0"),
        ({"a": 5}, {}, "has one sub-folder for each class, at least 2, '.*' has 1"),
        ({"a": 5, "b": 2}, {}, "the class 'b' has 2 images .* at least 3 are needed: add images, or .* --train-images"),
        ({"a": 5, "b": 0}, {}, "the class 'b' of '.*' has no images to train on"),
        ({"a": 5, "b": 5}, {"train_images": 1}, "of 10 images of 2 classes, 2 to 9 can train"),
        ({"a": 5, "b": 5}, {"train_images": 10}, "of 10 images of 2 classes, 2 to 9 can train"),
        ({"a": 5, "b": 5}, {"group": "x"}, "'x' finds no group in 'a/000.png': every image needs one"),
        ({"a": 5, "b": 5}, {"group": "("}, r"'\(' is not a regular expression"),
        ({"a": 5, "b": 5}, {"group": "^."}, "the class 'a' has 1 groups, at least 3 are needed"),
    ],
)
def test_folders_that_cannot_be_trained_on(tmp_path, counts, arguments, message):
    fill(tmp_path, counts)
    for name in counts:
        (tmp_path / name).mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=message):
        load_user_data(tmp_path, **arguments)


def test_no_folder_and_nothing_readable(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        load_user_data(tmp_path / "none")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"none of the images can be read; the first, '.*': the file is empty"):
        load_user_data(tmp_path)


def test_a_group_in_two_parts_is_refused(tmp_path):
    for part in ("train", "test"):
        objects(tmp_path / part)
    with pytest.raises(ValueError, match=r"the group '.*0' is in two parts, .* and .*: put it into one of them"):
        load_user_data(tmp_path, group=r"([a-z]+\d+)-")


def table(folder, parts):
    """Of images of the classes a and b, ``parts[name]`` has the part of each."""
    fill(folder, {name: len(given) for name, given in parts.items()})
    rows = [f"{name}/{number:03d}.png,{name},{part}" for name in parts for number, part in enumerate(parts[name])]
    (folder / "table.csv").write_text("\n".join(["path,label,part", *rows]))
    return folder / "table.csv"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"a": ["val", "test"], "b": ["test"]}, "no image of '.*' is of the part train .* only of test and validation"),
        ({"a": ["train"] * 3, "b": ["test"] * 3}, "no image of the class 'b' of '.*' is of the part train"),
        ({"a": ["train", "val"], "b": ["val"]}, "no image of the class 'b' of '.*' is of the part train"),
        (
            {"a": ["train"] * 3, "b": ["train"]},
            "the class 'b' has 1 images .* add images, or say which of them validate",
        ),
    ],
)
def test_a_table_that_leaves_nothing_to_train_on(tmp_path, parts, message):
    with pytest.raises(ValueError, match=message):
        load_user_data(table(tmp_path, parts))


def test_a_class_with_no_image_that_can_be_read_is_named(tmp_path):
    fill(tmp_path, {"a": 5, "b": 1})
    (tmp_path / "b" / "000.png").write_bytes(b"")
    for arguments in ({}, {"train_images": 3}):
        with pytest.raises(ValueError, match=r"no image of the class 'b' of '.*' can be read: add some"):
            load_user_data(tmp_path, **arguments)


def test_a_data_set_is_called_as_its_folder_or_file(tmp_path, monkeypatch):
    folder = fill(tmp_path / "dotted.v1.2", {"a": 3, "b": 3})
    assert load_user_data(folder)[0].name == "dotted.v1.2"
    assert load_user_data(table(tmp_path, {"a": ["train"] * 3, "b": ["train"] * 3}))[0].name == "table"
    monkeypatch.chdir(folder)
    assert load_user_data(Path())[0].name == "dotted.v1.2"
