import errno
import os

import pytest
import torch

from tigranet.data import mapped_images
from tigranet.data.mapped_images import empty_images


@pytest.fixture
def only_files(monkeypatch):
    """No tensor is small enough for the memory."""
    monkeypatch.setattr(mapped_images, "MAX_BYTES_IN_MEMORY", 0)


def test_small_tensors_are_in_memory(monkeypatch):
    monkeypatch.setattr(mapped_images, "_temporary_file", None)
    assert empty_images(2, 3, 4, 5).shape == (2, 3, 4, 5)


@pytest.mark.usefixtures("only_files")
def test_large_tensors_are_unnamed_files_in_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "new" / "cache"))
    images = empty_images(3, 1, 50, 50)
    assert images.shape == (3, 1, 50, 50)
    assert images.dtype == torch.float32
    assert not images.any()  # the space is reserved
    images[:] = torch.rand(3, 1, 50, 50)
    assert images.sum() > 0
    assert not list((tmp_path / "new" / "cache").iterdir())
    with open("/proc/self/maps") as maps:
        assert str(tmp_path / "new" / "cache") in maps.read()
    del images
    with open("/proc/self/maps") as maps:
        assert str(tmp_path / "new" / "cache") not in maps.read()


@pytest.mark.usefixtures("only_files")
def test_without_a_cache_folder_the_file_is_among_the_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    images = empty_images(1, 1, 4, 4)
    images.fill_(2)
    assert float(images.sum()) == 32


@pytest.mark.usefixtures("only_files")
def test_a_full_disk_is_found_before_anything_is_written(tmp_path, monkeypatch):
    requested = []

    def refuse(_descriptor, start, length):
        requested.append((start, length))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match=r"GiB.*No space left.*TIGRANET_CACHE") as error:
        empty_images(10, 3, 8, 8)
    assert error.value.errno == errno.ENOSPC
    assert requested == [(0, 4 * 10 * 3 * 64)] * 2


@pytest.mark.usefixtures("only_files")
def test_systems_that_cannot_reserve_space_extend_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path))
    monkeypatch.delattr(os, "posix_fallocate")
    images = empty_images(2, 1, 3, 3)
    images.fill_(1)
    assert float(images.sum()) == 18
