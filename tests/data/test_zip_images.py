import gc
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest

from tigranet.data import UnreadableFile, read_letterboxed
from tigranet.data import zip_images as module
from tigranet.data.zip_images import zip_images
from zip_files import image_bytes, write_zip


def read(path, color=False):
    """Return the value of the first pixel of each image by name, or the reason why there is none."""
    return {
        str(name.relative_to(path) if name != path else name): image.reason
        if isinstance(image, UnreadableFile)
        else round(float(image[0, 0, 0]) * 255)
        for name, image in read_letterboxed(zip_images(path), 8, color)
    }


def test_images_of_all_folders_are_read_in_the_order_of_the_archive(tmp_path):
    members = [("nut/2.png", image_bytes(2)), ("nut/deep/er/3.PNG", image_bytes(3)), ("1.png", image_bytes(1))]
    path = write_zip(tmp_path / "photos.zip", members)
    assert read(path) == {"nut/2.png": 2, "nut/deep/er/3.PNG": 3, "1.png": 1}
    assert list(read(path)) == [name for name, _ in members]


def test_folders_hidden_files_and_files_that_are_no_images_are_skipped(tmp_path):
    skipped = ["nut/", ".hidden.png", "nut/.cache/a.png", "__MACOSX/._1.png", "notes.txt", "inner.zip", "no suffix"]
    path = write_zip(tmp_path / "a.zip", [*((name, b"x") for name in skipped), ("1.png", image_bytes(1))])
    assert read(path) == {"1.png": 1}


def test_names_that_lead_out_of_the_archive_are_names_only(tmp_path):
    names = ["../../up.png", "/etc/absolute.png", "C:\\\\windows.png", "a/../b.png", "line\nbreak.png", "\u00e4.png"]
    path = write_zip(tmp_path / "a.zip", [(name, image_bytes(7)) for name in names])
    before = sorted(tmp_path.rglob("*"))
    items = list(zip_images(path))
    assert all(str(item.path).startswith(str(path)) for item in items)
    assert set(read(path).values()) == {7}
    assert len(items) == len(names)
    assert sorted(tmp_path.rglob("*")) == before


def test_two_members_of_one_name_are_two_images(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = write_zip(tmp_path / "a.zip", [("1.png", image_bytes(1)), ("1.png", image_bytes(2))])
    images = [image for _, image in read_letterboxed(zip_images(path), 8, False)]
    assert [round(float(image[0, 0, 0]) * 255) for image in images] == [1, 2]


def test_encrypted_and_unknown_members_are_reported_and_the_others_read(tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, [("0.png", image_bytes(1)), ("1.png", image_bytes(2)), ("2.png", image_bytes(3))])
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    content[start + 8] |= 1  # the flag of encryption, in the table of contents
    second = content.index(b"PK\x01\x02", start + 1)
    struct.pack_into("<H", content, second + 10, zipfile.ZIP_LZMA)
    path.write_bytes(content)
    results = read(path)
    assert "encrypted" in results["0.png"]
    assert "method 14" in results["1.png"]
    assert results["2.png"] == 3


def test_damaged_and_empty_members_and_other_content_are_reported(tmp_path):
    path = tmp_path / "a.zip"
    members = [("bad.png", bytes(1000)), ("empty.png", b""), ("text.jpg", b"no image"), ("good.png", image_bytes(9))]
    write_zip(path, members, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    results = read(path)
    assert "CRC" in results["bad.png"]
    assert "empty" in results["empty.png"]
    assert "not an image" in results["text.jpg"]
    assert results["good.png"] == 9


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" + b"\xff" * 18])
def test_an_archive_that_cannot_be_read_is_reported_with_its_own_name(tmp_path, content):
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    ((name, result),) = read_letterboxed(zip_images(path), 8, False)
    assert name == result.path == path


def test_a_false_size_of_the_table_of_contents_takes_no_memory(tmp_path):
    """The end of the archive states a table of contents of 3 GB, and the file has a hole of this size."""
    path = tmp_path / "a.zip"
    size = 3 * 2**30
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, size, 0, 0))
    (result,) = zip_images(path)
    assert f"{size:,} bytes" in result.reason


def test_bombs_are_refused_by_their_stated_and_by_their_real_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SMALL_BYTES", 10_000)
    path = write_zip(tmp_path / "a.zip", [("bomb.png", bytes(10**6)), ("good.png", image_bytes(5))])
    results = read(path)
    assert "1,000,000 bytes" in results["bomb.png"]
    assert results["good.png"] == 5
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, start + 24, 5_000)  # it states a smaller size than it has
    path.write_bytes(content)
    assert "cannot be unpacked" in read(path)["bomb.png"]


def test_a_member_that_is_too_large_for_the_memory_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.data.packed_image.MAX_CONTENT_BYTES", 50)
    noise = np.random.default_rng(0).bytes(100)
    path = write_zip(tmp_path / "a.zip", [("large.png", noise)])
    assert "more than 50" in read(path)["large.png"]


def test_the_archive_is_closed_after_the_last_image(tmp_path):
    path = write_zip(tmp_path / "a.zip", [(f"{number}.png", image_bytes(number)) for number in range(20)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        assert len(read(path)) == 20
        unread = list(zip_images(path))
        del unread
        gc.collect()
    if os.path.isdir("/proc/self/fd"):
        links = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        assert str(path.resolve()) not in links


def test_colours_are_kept_on_request(tmp_path):
    path = write_zip(tmp_path / "a.zip", [("1.png", image_bytes(100, "RGB"))])
    ((_, image),) = read_letterboxed(zip_images(path), 8, True)
    assert image.shape == (3, 8, 8)
