import os

import pytest
import torch

from images import fill
from tigranet.data import decoded
from tigranet.data.decoded import decode
from tigranet.data.framed import Broken, read_framed
from tigranet.data.listing import image_files


@pytest.fixture
def files(tmp_path):
    fill(tmp_path / "photos", {"a": 5, "b": 4})
    (tmp_path / "photos" / "a" / "002.png").write_bytes(b"")
    return list(image_files(tmp_path / "photos"))


def test_what_is_read_back_is_what_was_decoded(files):
    images, read, broken = decode(files, 10, color=False)
    wanted = [image for _, image in read_framed(files, 10, color=False)]
    assert broken == [Broken(files[2], "the file is empty")]
    assert read.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert torch.equal(images, torch.stack([image for image in wanted if not isinstance(image, Broken)]))


def test_a_second_time_no_file_is_opened(files, monkeypatch):
    first, *_ = decode(files, 10, color=False)
    monkeypatch.setattr(decoded, "read_framed", lambda *_: pytest.fail("decoded again"))
    images, read, broken = decode(files, 10, color=False)
    assert torch.equal(images, first)
    assert (len(read), len(broken)) == (8, 1)


def test_a_changed_file_another_size_and_colour_are_decoded_anew(files):
    first, *_ = decode(files, 10, color=False)
    assert decode(files, 11, color=False)[0].shape[2:] == (11, 11)
    files[0].write_bytes(files[-1].read_bytes())
    os.utime(files[0], ns=(1, 1))
    assert not torch.equal(decode(files, 10, color=False)[0], first)


def test_what_was_read_otherwise_is_read_again(files, monkeypatch):
    decode(files, 10, color=False)
    monkeypatch.setattr(decoded, "WAY_OF_READING", decoded.WAY_OF_READING + 1)
    monkeypatch.setattr(decoded, "read_framed", lambda *_: pytest.fail("decoded again"))
    with pytest.raises(pytest.fail.Exception, match="decoded again"):
        decode(files, 10, color=False)


def test_whoever_changes_the_images_changes_a_copy(files):
    first, *_ = decode(files, 10, color=False)
    kept = first.clone()
    first.zero_()
    assert torch.equal(decode(files, 10, color=False)[0], kept)


def test_no_half_of_it_is_left_behind(files, monkeypatch, tmp_path):
    def failing(paths, *_):
        yield paths[0], torch.zeros(1, 10, 10)
        raise KeyboardInterrupt

    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(decoded, "read_framed", failing)
    with pytest.raises(KeyboardInterrupt):
        decode(files, 10, color=False)
    assert list((tmp_path / "cache" / "decoded").iterdir()) == []


def test_the_oldest_makes_room(files, monkeypatch, tmp_path):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(decoded, "LARGEST_CACHE", 10_000)
    for size in (10, 11, 12, 13):
        decode(files, size, color=False)
    kept = list((tmp_path / "cache" / "decoded").glob("*.f4"))
    assert sum(file.stat().st_size for file in kept) <= 10_000
    assert 8 * 13 * 13 * 4 in [file.stat().st_size for file in kept]


def test_what_a_killed_run_left_is_cleared_away_and_what_another_writes_is_not(files, monkeypatch, tmp_path):
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "cache"))
    decode(files, 10, color=False)
    (target,) = (tmp_path / "cache" / "decoded").glob("*.f4")
    left, written = (target.with_name(f".{target.name}.{number}") for number in (123, 456))
    for file in (left, written):
        file.write_bytes(b"half")
    os.utime(left, (1, 1))
    decode(files, 11, color=False)
    assert not left.exists()
    assert written.exists()
    assert target.exists()


def test_a_cache_that_cannot_be_written_names_the_cure(files, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match="set TIGRANET_CACHE to a folder that can be written"):
        decode(files, 10, color=False)
