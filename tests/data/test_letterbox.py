import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from image_corpus import whole_image, write_corpus
from images import fill
from tigranet.data import letterbox as letterbox_module
from tigranet.data import pixel_rows
from tigranet.data.find_images import image_files
from tigranet.data.letterbox import (
    MAX_DEFAULT_SIZE,
    StoredImage,
    UnreadableFile,
    default_file_size,
    default_size,
    letterbox,
    letterbox_bytes,
    read_letterboxed,
)


def test_the_aspect_ratio_is_kept_and_the_rest_filled_with_the_border():
    image = np.full((20, 10, 1), 0.25, np.float32)
    image[5:15, 3:7] = 1
    square = letterbox(image, 40)
    assert square.shape == (40, 40, 1)
    assert (square[:, :10] == 0.25).all()
    assert (square[:, 30:] == 0.25).all()
    bright = np.argwhere(square[..., 0] > 0.6)
    assert np.ptp(bright, axis=0).tolist() == [19, 7]  # twice as large in both directions
    rotated = letterbox(np.rot90(image).copy(), 40)
    np.testing.assert_allclose(rotated, np.rot90(square), atol=1e-6)


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    size=st.integers(2, 24),
    turns=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
@example(height=11, width=16, size=16, turns=1, seed=0)  # a margin of 5 pixels cannot be shared equally
def test_quarter_turns_of_any_image_give_the_rotated_square(height, width, size, turns, seed):
    image = np.random.default_rng(seed).random((height, width, 1), dtype=np.float32)
    rotated = letterbox(np.ascontiguousarray(np.rot90(image, turns)), size)
    np.testing.assert_allclose(rotated, np.rot90(letterbox(image, size), turns), atol=1e-5)


def test_an_image_of_the_right_size_is_unchanged():
    image = np.random.default_rng(0).random((9, 9, 2), dtype=np.float32)
    assert letterbox(image, 9) is image


def test_files_are_read_in_order_and_only_a_window_ahead(tmp_path):
    fill(tmp_path, {"a": 30})
    requested = []

    def paths():
        for path in image_files(tmp_path):
            requested.append(path)
            yield path

    results = read_letterboxed(paths(), 12, color=False, window=4)
    first = next(results)
    assert len(requested) == 4
    names = [first[0].name, *(path.name for path, _ in results)]
    assert names == [f"{number:03d}.png" for number in range(30)]


def test_without_threads_the_same_images_are_read_when_they_are_asked_for(tmp_path):
    files = list(image_files(fill(tmp_path, {"a": 3})))
    begun = []
    stream = read_letterboxed((begun.append(file) or file for file in files), 4, color=False, workers=0)
    first = next(stream)
    assert begun == files[:1]
    for (path, image), (other, expected) in zip([first, *stream], read_letterboxed(files, 4, color=False), strict=True):
        assert path == other
        assert image.equal(expected)
        assert image.is_contiguous()


class SlowImage(StoredImage):
    """An image of one value that takes a number of seconds."""

    path = Path("slow.png")

    def __init__(self, value, seconds):
        self.value, self.seconds = value, seconds

    def square(self, size, color):
        time.sleep(self.seconds)
        return np.full((size, size, 1), self.value, np.float32)


@pytest.mark.parametrize(("first_slow", "threaded"), [(0, 26), (10, 16), (30, 0)])
def test_threads_read_images_only_after_several_slow_ones(monkeypatch, first_slow, threaded):
    submitted = []

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments):
            submitted.append(arguments)
            return super().submit(*arguments)

    monkeypatch.setattr(letterbox_module, "ThreadPoolExecutor", Pool)
    images = [SlowImage(number, 0.06 if number >= first_slow else 0) for number in range(30)]
    results = list(read_letterboxed(images, 2, color=False, workers=8, min_threaded_seconds=0.05))
    assert [float(image.mean()) for _, image in results] == list(range(30))
    assert len(submitted) == threaded


def test_an_unreadable_file_is_returned_with_the_reason(tmp_path):
    fill(tmp_path, {"a": 2})
    (tmp_path / "a" / "000.png").write_bytes(b"")
    (first, unreadable), (_, image) = read_letterboxed(image_files(tmp_path), 8, False)
    assert unreadable == UnreadableFile(first, "the file is empty")
    assert image.shape == (1, 8, 8)


@pytest.mark.parametrize(
    ("sides", "expected"), [([], 64), ([1], 2), ([10, 20, 30], 20), ([10, 11], 10), ([100, 200], 64)]
)
def test_the_default_size_is_the_median_between_2_and_the_limit(sides, expected):
    assert default_size(sides, 64) == expected
    assert default_size([10**6]) == MAX_DEFAULT_SIZE


@pytest.mark.parametrize(("shape", "expected"), [((12, 12), 12), ((200, 100), 64), ((20, 30), 30)])
def test_the_default_size_of_files_is_that_of_their_longer_sides(tmp_path, shape, expected):
    fill(tmp_path, {"a": 3, "b": 3}, size=shape)
    (tmp_path / "a" / "broken.png").write_bytes(b"no image")
    assert default_file_size(list(image_files(tmp_path)), 64) == expected


def test_a_file_that_is_known_to_be_unreadable_is_passed_on_in_its_place(tmp_path):
    fill(tmp_path, {"a": 2})
    first, second = image_files(tmp_path)
    unreadable = UnreadableFile(tmp_path / "pipe.png", "is a named pipe")
    results = list(read_letterboxed([first, unreadable, second], 8, False))
    assert [path for path, _ in results] == [first, unreadable.path, second]
    assert results[1][1] is unreadable


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("plane_bytes", [1, 2**27])
def test_large_images_are_letterboxed_to_the_bits_of_the_whole_image(tmp_path, monkeypatch, plane_bytes):
    monkeypatch.setattr(pixel_rows, "STRIP_VALUES", 30)
    monkeypatch.setattr(letterbox_module, "MAX_PLANE_BYTES", plane_bytes)
    color = plane_bytes == 1
    paths = write_corpus(tmp_path, [(16, 40)] if color else [(41, 12)])
    for size in (8, 23) if color else (9,):
        for path, image in read_letterboxed(paths, size, color):
            expected = letterbox(np.ascontiguousarray(whole_image(path, color)), size).transpose(2, 0, 1)
            np.testing.assert_array_equal(image.numpy(), expected, err_msg=path.name)


def test_the_memory_includes_the_weights_for_very_long_sides():
    assert letterbox_bytes(1, 10**7, 1, 64) > 16 * 10**7
    assert letterbox_bytes(100, 100, 1, 64) < 10**6


@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (1, 1), (1, 50_000)])
def test_lines_and_points_are_letterboxed(shape):
    square = letterbox(np.full((*shape, 2), 0.5, np.float32), 16)
    assert square.shape == (16, 16, 2)
    np.testing.assert_allclose(square, 0.5, atol=1e-6)


def test_pipes_do_not_block_the_default_size_or_the_reader(tmp_path):
    fill(tmp_path, {"a": 2}, size=(12, 12))
    os.mkfifo(tmp_path / "a" / "002.png")
    paths = sorted((tmp_path / "a").iterdir())
    assert default_file_size(paths) == 12
    *_, (path, result) = read_letterboxed(paths, 12, False)
    assert isinstance(result, UnreadableFile)
    assert path.name == "002.png"
    assert "pipe" in result.reason
