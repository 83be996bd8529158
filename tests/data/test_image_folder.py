import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.data import Isometry
from tigranet.data.image_folder import Broken, find_images, framed, image_files, load_folder, read_framed


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def fill(folder, counts, size=(12, 12), seed=0):
    """Images whose mean grows with the class."""
    rng = np.random.default_rng(seed)
    for label, (name, count) in enumerate(counts.items()):
        for number in range(count):
            save(folder / name / f"{number:03d}.png", (rng.integers(0, 60, size) + 60 * label).astype(np.uint8))
    return folder


def test_one_sub_folder_a_class(tmp_path):
    fill(tmp_path, {"b": 3, "a": 2})
    save(tmp_path / "a" / "deeper" / "x.jpg", np.zeros((4, 4), np.uint8))
    (tmp_path / "a" / "notes.txt").write_text("no image")
    (tmp_path / "a" / ".hidden.png").write_text("no image")
    (tmp_path / ".cache").mkdir()
    found = find_images(tmp_path)
    assert found.class_names == ("a", "b")
    assert [(path.name, label) for path, label in found.parts[""]] == [
        ("000.png", 0), ("001.png", 0), ("x.jpg", 0), ("000.png", 1), ("001.png", 1), ("002.png", 1),
    ]  # fmt: skip
    assert len(list(image_files(tmp_path))) == 6


def test_the_split_is_stratified_repeatable_and_whole(tmp_path):
    fill(tmp_path, {"a": 40, "b": 20, "c": 3})
    data, broken = load_folder(tmp_path, seed=1)
    assert broken == []
    assert data.moved == Isometry(turned=True, outside="reflection")
    assert [torch.bincount(part.labels).tolist() for part in (data.train, data.validation, data.test)] == [
        [28, 14, 1], [6, 3, 1], [6, 3, 1],
    ]  # fmt: skip
    every = torch.cat([data.train.images, data.validation.images, data.test.images]).flatten(1)
    assert len(torch.unique(every, dim=0)) == 63
    again, _ = load_folder(tmp_path, seed=1)
    other, _ = load_folder(tmp_path, seed=2)
    assert torch.equal(again.test.images, data.test.images)
    assert not torch.equal(other.test.images, data.test.images)


def test_parts_of_its_own_are_kept(tmp_path):
    for part, count in (("train", 10), ("val", 3), ("test", 4)):
        fill(tmp_path / part, {"a": count, "b": count}, seed=count)
    data, _ = load_folder(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [20, 6, 8]
    for path in sorted((tmp_path / "val").rglob("*.png")):
        path.unlink()
    for path in ((tmp_path / "val" / "a"), (tmp_path / "val" / "b"), (tmp_path / "val")):
        path.rmdir()
    data, _ = load_folder(tmp_path)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [16, 4, 8]


def test_images_of_one_small_size_are_left_as_they_are(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)
    fill(tmp_path, {"a": 3, "b": 3})
    save(tmp_path / "a" / "000.png", pixels)
    data, _ = load_folder(tmp_path)
    images = torch.cat([data.train.images, data.validation.images, data.test.images])
    assert images.shape == (6, 1, 12, 12)
    assert any(torch.equal(image[0], torch.from_numpy(pixels).float() / 255) for image in images)


@pytest.mark.parametrize(("shape", "wanted"), [((12, 12), 12), ((200, 100), 64), ((20, 30), 30)])
def test_the_size_is_the_median_longer_side_at_most_64(tmp_path, shape, wanted):
    fill(tmp_path, {"a": 3, "b": 3}, size=shape)
    assert load_folder(tmp_path)[0].train.images.shape[2:] == (wanted, wanted)
    assert load_folder(tmp_path, size=10)[0].train.images.shape[2:] == (10, 10)


def test_framing_keeps_the_shape_and_fills_with_the_border():
    image = np.full((20, 10, 1), 0.25, np.float32)
    image[5:15, 3:7] = 1
    square = framed(image, 40)
    assert square.shape == (40, 40, 1)
    assert (square[:, :10] == 0.25).all()
    assert (square[:, 30:] == 0.25).all()
    bright = np.argwhere(square[..., 0] > 0.6)
    assert np.ptp(bright, axis=0).tolist() == [19, 7]  # twice as large, no wider for it
    turned = framed(np.rot90(image).copy(), 40)
    np.testing.assert_allclose(turned, np.rot90(square), atol=1e-6)


def test_broken_files_are_left_out_and_named(tmp_path):
    fill(tmp_path, {"a": 10, "b": 10})
    (tmp_path / "a" / "003.png").write_bytes(b"")
    (tmp_path / "b" / "007.png").write_bytes(b"not an image")
    data, broken = load_folder(tmp_path)
    assert [(file.path.name, file.reason) for file in broken] == [
        ("003.png", "the file is empty"),
        ("007.png", "not an image of a kind that is read here"),
    ]
    assert sum(len(part.labels) for part in (data.train, data.validation, data.test)) == 18


def test_colour_is_asked_for(tmp_path):
    for name in ("a", "b"):
        for number in range(4):
            save(tmp_path / name / f"{number}.png", np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8))
    assert load_folder(tmp_path)[0].train.images.shape[1] == 1
    assert load_folder(tmp_path, color=True)[0].train.images.shape[1] == 3
    save(tmp_path / "a" / "grey.png", np.zeros((8, 8), np.uint8))
    with pytest.raises(ValueError, match=r"have \[1, 3\] channels: leave out --color"):
        load_folder(tmp_path, color=True)


def test_files_are_read_a_few_at_a_time_and_in_order(tmp_path):
    fill(tmp_path, {"a": 30})
    asked = []

    def paths():
        for path in image_files(tmp_path):
            asked.append(path)
            yield path

    results = read_framed(paths(), 12, color=False, window=4)
    first = next(results)
    assert len(asked) == 4
    names = [first[0].name, *(path.name for path, _ in results)]
    assert names == [f"{number:03d}.png" for number in range(30)]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, "has one sub-folder for each class, at least 2, '.*' has 0"),
        ({"a": 5}, "has one sub-folder for each class, at least 2, '.*' has 1"),
        ({"a": 5, "b": 2}, "the class 'b' has 2 images that can be read, at least 3 are needed"),
        ({"a": 5, "b": 0}, "the class 'b' of '.*' has no images to train on"),
    ],
)
def test_folders_that_cannot_be_trained_on(tmp_path, counts, message):
    fill(tmp_path, counts)
    for name in counts:
        (tmp_path / name).mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=message):
        load_folder(tmp_path)


def test_no_folder_and_nothing_readable(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_folder(tmp_path / "none")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"none of the images of '.*' can be read; the first: the file is empty"):
        load_folder(tmp_path)
    assert isinstance(next(read_framed(image_files(tmp_path), 8, False))[1], Broken)
