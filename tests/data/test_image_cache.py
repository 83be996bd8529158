import os

import pytest
import torch

from images import fill
from tigranet.data import image_cache
from tigranet.data.find_images import image_files
from tigranet.data.image_cache import decode_images
from tigranet.data.letterbox import UnreadableFile, read_letterboxed


@pytest.fixture
def files(tmp_path):
    """Eight images and, in position 2, an empty file."""
    fill(tmp_path / "photos", {"a": 5, "b": 4})
    (tmp_path / "photos" / "a" / "002.png").write_bytes(b"")
    return list(image_files(tmp_path / "photos"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoded"


def fail_to_decode(*_):
    pytest.fail("decoded again")


def test_the_images_are_those_of_the_files(files):
    images, positions, unreadable = decode_images(files, 10, color=False)
    expected = [image for _, image in read_letterboxed(files, 10, color=False)]
    assert unreadable == [UnreadableFile(files[2], "the file is empty")]
    assert positions.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert torch.equal(images, torch.stack([image for image in expected if not isinstance(image, UnreadableFile)]))


def test_the_second_time_no_file_is_decoded(files, monkeypatch):
    first, *_ = decode_images(files, 10, color=False)
    monkeypatch.setattr(image_cache, "read_letterboxed", fail_to_decode)
    images, positions, unreadable = decode_images(files, 10, color=False)
    assert torch.equal(images, first)
    assert (len(positions), len(unreadable)) == (8, 1)


def test_a_changed_file_and_another_size_are_decoded_again(files):
    first, *_ = decode_images(files, 10, color=False)
    assert decode_images(files, 11, color=False)[0].shape[2:] == (11, 11)
    files[0].write_bytes(files[-1].read_bytes())
    os.utime(files[0], ns=(1, 1))
    assert not torch.equal(decode_images(files, 10, color=False)[0], first)


@pytest.mark.parametrize("color", [False, True])
def test_a_new_cache_format_and_another_colour_mode_are_decoded_again(files, monkeypatch, color):
    decode_images(files, 10, color=False)
    if not color:
        monkeypatch.setattr(image_cache, "CACHE_FORMAT", image_cache.CACHE_FORMAT + 1)
    monkeypatch.setattr(image_cache, "read_letterboxed", fail_to_decode)
    with pytest.raises(pytest.fail.Exception, match="decoded again"):
        decode_images(files, 10, color=color)


def test_changes_of_the_tensor_do_not_reach_the_cache(files):
    first, *_ = decode_images(files, 10, color=False)
    expected = first.clone()
    first.zero_()
    assert torch.equal(decode_images(files, 10, color=False)[0], expected)


def test_an_interrupted_run_leaves_no_file(files, monkeypatch, cache):
    def interrupted(paths, *_):
        yield paths[0], torch.zeros(1, 10, 10)
        raise KeyboardInterrupt

    monkeypatch.setattr(image_cache, "read_letterboxed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decode_images(files, 10, color=False)
    assert list(cache.iterdir()) == []


def test_the_oldest_files_are_deleted_when_the_cache_is_full(files, monkeypatch, cache):
    monkeypatch.setattr(image_cache, "MAX_CACHE_BYTES", 10_000)
    for size in (10, 11, 12, 13):
        decode_images(files, size, color=False)
    sizes = [file.stat().st_size for file in cache.glob("*.f4")]
    assert sum(sizes) <= 10_000
    assert 8 * 13 * 13 * 4 in sizes
    assert len(list(cache.glob("*.json"))) == len(sizes)


def test_old_partial_files_are_deleted_and_recent_ones_are_not(files, cache):
    decode_images(files, 10, color=False)
    (complete,) = cache.glob("*.f4")
    old, recent = (complete.with_name(f".{complete.name}.{number}") for number in (123, 456))
    for file in (old, recent):
        file.write_bytes(b"partial")
    os.utime(old, (1, 1))
    decode_images(files, 11, color=False)
    assert not old.exists()
    assert recent.exists()
    assert complete.exists()


def test_the_error_for_an_unwritable_cache_names_the_remedy(files, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"file/decoded'.*TIGRANET_CACHE"):
        decode_images(files, 10, color=False)
