import numpy as np
import pytest
import torch

from tigranet.data import UnreadableFile, read_letterboxed
from tigranet.data.npz_data import read_npz_images
from tigranet.data.npz_images import npz_images

RNG = np.random.default_rng(0)


def read(path, size=8, color=False):
    return list(read_letterboxed(npz_images(path), size, color))


@pytest.mark.parametrize(
    "images",
    [
        RNG.integers(0, 256, (6, 8, 8), dtype=np.uint8),
        RNG.integers(0, 65536, (6, 5, 9), dtype=np.uint16),
        RNG.integers(0, 200, (6, 8, 8, 3)),
        RNG.random((6, 10, 8, 1)),
        RNG.random((6, 8, 8)) > 0.5,
    ],
    ids=lambda images: f"{images.dtype}{images.shape}",
)
@pytest.mark.parametrize("color", [False, True])
def test_images_have_the_pixels_of_a_training(tmp_path, images, color):
    path = tmp_path / "a.npz"
    np.savez(path, images=images, labels=[0, 1] * 3)
    expected = read_npz_images(path, 8, color).images
    results = read(path, color=color)
    assert [str(name) for name, _ in results] == [f"{path}/images[{number}]" for number in range(6)]
    assert torch.equal(torch.stack([image for _, image in results]), expected)


def test_labels_are_not_needed_and_parts_are_read_one_after_the_other(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x_test=np.zeros((2, 4, 4)), train_images=np.ones((1, 4, 4)), y_test=np.zeros(7))
    assert [name.name for name, _ in read(path)] == ["x_test[0]", "x_test[1]", "train_images[0]"]


def test_an_image_with_bad_numbers_does_not_stop_the_others(tmp_path):
    images = np.full((4, 4, 4), 0.5)
    images[1, 0, 0], images[2, 0, 0] = np.nan, 3.0
    np.savez(tmp_path / "a.npz", images=images)
    first, second, third, fourth = (image for _, image in read(tmp_path / "a.npz"))
    assert "NaN" in second.reason
    assert "0.5 to 3" in third.reason
    assert first.shape == fourth.shape == (1, 8, 8)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"labels": np.zeros(3)}, "labels"),
        ({"images": np.zeros((3, 4))}, "(3, 4)"),
        ({"images": np.zeros((0, 4, 4))}, "(0, 4, 4)"),
        ({"images": np.array(["a", "b"])}, "(2,)"),
        ({"images": np.zeros((2, 3, 32, 32))}, "channels"),
        ({"images": np.full((2, 4, 4), -1)}, "-1"),
        ({"images": np.full((2, 4, 4), 10**6)}, "65535"),
    ],
)
def test_an_array_that_holds_no_images_is_reported_with_the_name_of_the_file(tmp_path, arrays, words):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    (result,) = npz_images(path)
    assert isinstance(result, UnreadableFile)
    assert result.path == path
    assert words in result.reason


def test_a_damaged_file_is_reported_after_the_images_before_the_damage(tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.data.npz_file.BLOCK_BYTES", 64)
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((500, 8, 8), np.uint8))
    content = bytearray(path.read_bytes())
    content[-400] ^= 1  # in the last images
    path.write_bytes(content)
    *images, last = npz_images(path)
    assert isinstance(last, UnreadableFile)
    assert 0 < len(images) <= 500
    path.write_bytes(content[:100])
    (result,) = npz_images(path)
    assert result.path == path


def test_few_large_images_are_held_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.data.letterbox.MAX_HELD_BYTES", 200)
    monkeypatch.setattr("tigranet.data.npz_file.BLOCK_BYTES", 64)
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((20, 8, 8), np.uint8))
    taken = []

    def items():
        for item in npz_images(path):
            taken.append(item)
            yield item

    stream = read_letterboxed(items(), 8, False)
    next(stream)
    assert len(taken) <= 4
    assert len(list(stream)) == 19


def test_an_image_that_takes_too_much_memory_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.data.npz_images.DECODE_BUDGET.limit", 1000)
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 64, 64), np.uint8))
    ((_, result),) = read(tmp_path / "a.npz")
    assert "memory" in result.reason
