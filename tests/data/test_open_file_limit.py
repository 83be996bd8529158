import errno
import os
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from PIL import Image

from tigranet.data import open_file_limit
from tigranet.data.find_images import find_folders, find_images
from tigranet.data.letterbox import read_letterboxed
from tigranet.data.open_file_limit import TooManyOpenFilesError, open_when_possible

resource = pytest.importorskip("resource", reason="this system has no limits of this kind")
COUNT = 24
"""Number of images."""


@contextmanager
def few_open_files(free):
    """Let this process open only a few more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, before[1]))
    held = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        for _ in range(free):
            os.close(held.pop())
        yield
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / f"{k}.png" for k in range(COUNT)]
    for k, path in enumerate(found):
        Image.fromarray(np.full((64, 64), k, np.uint8)).save(path)
    return found


def test_more_threads_than_open_files_read_every_image(paths):
    """A low limit changes how many images are read at once, not which."""
    [_] = read_letterboxed(paths[:1], 8, False)  # imports the decoder
    with few_open_files(2):
        images = [image for _, image in read_letterboxed(paths, 8, False, workers=8)]
    assert [round(float(image.mean()) * 255) for image in images] == list(range(COUNT))


def test_without_any_open_file_the_reading_ends_instead_of_leaving_images_out(paths, monkeypatch):
    [_] = read_letterboxed(paths[:1], 8, False)
    monkeypatch.setattr(open_file_limit, "WAITING_SECONDS", 0.05)
    with few_open_files(0), pytest.raises(TooManyOpenFilesError, match=r"too many open files \(ulimit -n is \d+\)"):
        list(read_letterboxed(paths, 8, False))


@pytest.mark.parametrize("search", [lambda folder: list(find_images(folder)), find_folders])
def test_a_folder_that_cannot_be_listed_for_this_reason_ends_the_search(paths, monkeypatch, search):
    monkeypatch.setattr(open_file_limit, "WAITING_SECONDS", 0.05)
    with few_open_files(0), pytest.raises(TooManyOpenFilesError):
        search(paths[0].parent)


def test_other_errors_are_passed_on_at_once():
    calls = []

    def fail():
        calls.append(None)
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(PermissionError):
        open_when_possible(fail)
    assert len(calls) == 1


def test_a_file_that_is_closed_meanwhile_lets_the_next_one_open():
    calls = []

    def succeed_the_third_time():
        calls.append(None)
        if len(calls) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return len(calls)

    assert open_when_possible(succeed_the_third_time) == 3
