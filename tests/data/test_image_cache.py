import os

import pytest
import torch

from images import fill
from tigranet.data import image_cache
from tigranet.data.folder_index import image_files
from tigranet.data.image_cache import decode_images
from tigranet.data.letterbox import UnreadableFile, read_letterboxed


@pytest.fixture
def files(tmp_path):
    fill(tmp_path / "photos", {"a": 5, "b": 4})
    (tmp_path / "photos" / "a" / "002.png").write_bytes(b"")
    return list(image_files(tmp_path / "photos"))


def test_what_is_read_back_is_what_was_decoded(files):
    images, read, broken = decode_images(files, 10, color=False)
    wanted = [image for _, image in read_letterboxed(files, 10, color=False)]
    assert broken == [UnreadableFile(files[2], "the file is empty")]
    assert read.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert torch.equal(images, torch.stack([image for image in wanted if not isinstance(image, UnreadableFile)]))


def test_a_second_time_no_file_is_opened(files, monkeypatch):
    first, *_ = decode_images(files, 10, color=False)
    monkeypatch.setattr(image_cache, "read_letterboxed", lambda *_: pytest.fail("image_cache again"))
    images, read, broken = decode_images(files, 10, color=False)
    assert torch.equal(images, first)
    assert (len(read), len(broken)) == (8, 1)


def test_a_changed_file_another_size_and_colour_are_decoded_anew(files):
    first, *_ = decode_images(files, 10, color=False)
    assert decode_images(files, 11, color=False)[0].shape[2:] == (11, 11)
    files[0].write_bytes(files[-1].read_bytes())
    os.utime(files[0], ns=(1, 1))
    assert not torch.equal(decode_images(files, 10, color=False)[0], first)


def test_what_was_read_otherwise_is_read_again(files, monkeypatch):
    decode_images(files, 10, color=False)
    monkeypatch.setattr(image_cache, "CACHE_FORMAT", image_cache.CACHE_FORMAT + 1)
    monkeypatch.setattr(image_cache, "read_letterboxed", lambda *_: pytest.fail("image_cache again"))
    with pytest.raises(pytest.fail.Exception, match="image_cache again"):
        decode_images(files, 10, color=False)


def test_whoever_changes_the_images_changes_a_copy(files):
    first, *_ = decode_images(files, 10, color=False)
    kept = first.clone()
    first.zero_()
    assert torch.equal(decode_images(files, 10, color=False)[0], kept)


def test_no_half_of_it_is_left_behind(files, monkeypatch, tmp_path):
    def failing(paths, *_):
        yield paths[0], torch.zeros(1, 10, 10)
        raise KeyboardInterrupt

    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_cache, "read_letterboxed", failing)
    with pytest.raises(KeyboardInterrupt):
        decode_images(files, 10, color=False)
    assert list((tmp_path / "cache" / "decoded").iterdir()) == []


def test_the_oldest_makes_room(files, monkeypatch, tmp_path):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_cache, "LARGEST_CACHE", 10_000)
    for size in (10, 11, 12, 13):
        decode_images(files, size, color=False)
    kept = list((tmp_path / "cache" / "decoded").glob("*.f4"))
    assert sum(file.stat().st_size for file in kept) <= 10_000
    assert 8 * 13 * 13 * 4 in [file.stat().st_size for file in kept]


def test_what_a_killed_run_left_is_cleared_away_and_what_another_writes_is_not(files, monkeypatch, tmp_path):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    decode_images(files, 10, color=False)
    (target,) = (tmp_path / "cache" / "decoded").glob("*.f4")
    left, written = (target.with_name(f".{target.name}.{number}") for number in (123, 456))
    for file in (left, written):
        file.write_bytes(b"half")
    os.utime(left, (1, 1))
    decode_images(files, 11, color=False)
    assert not left.exists()
    assert written.exists()
    assert target.exists()


def test_a_cache_that_cannot_be_written_names_the_cure(files, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match="set TIGRANET_CACHE to a folder that can be written"):
        decode_images(files, 10, color=False)
