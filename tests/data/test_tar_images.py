"""Ranges of a tar file together give its images once, in order, and damage is found."""

import io
import tarfile

import pytest

from bulk_sources import contents, names_of, write_tar
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.packed_image import MAX_CONTENT_BYTES
from tigranet.data.tar_images import TarError, tar_images, tar_ranges

COUNT = 7


def rows(pairs):
    return [{"path": name} for name, _ in pairs]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_ranges_give_the_images_of_the_whole_file(tmp_path, size):
    with write_tar(tmp_path / "a.tar", COUNT).open("rb") as file:
        ranges = list(tar_ranges(file, size))
        assert sum(each.images for each in ranges) == COUNT
        assert all(each.images <= size for each in ranges)
        images = [pair for each in ranges for pair in tar_images(file, "a.tar", *each)]
        assert rows(images) == rows(tar_images(file, "a.tar"))
    assert names_of(rows(images)) == list(contents(COUNT))
    assert [image.content for _, image in images] == list(contents(COUNT).values())


@pytest.mark.parametrize("format_", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_what_is_no_image(tmp_path, format_):
    names = [f"{'folder' * 30}/ä{number}.png" for number in range(3)]
    with tarfile.open(tmp_path / "a.tar", "w", format=format_) as archive:
        for name in (".hidden.png", "folder/._mac.png", "notes.txt", *names):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with open(tmp_path / "a.tar", "rb") as file:
        found = [name for each in tar_ranges(file, 1) for name, _ in tar_images(file, "t", *each)]
    assert found == [f"t/{name}" for name in names]


def test_a_damaged_file_gives_the_images_before_the_damage(tmp_path):
    path = write_tar(tmp_path / "a.tar", COUNT)
    path.write_bytes(path.read_bytes()[: 4 * 2048 + 600])
    with path.open("rb") as file:
        ranges = tar_ranges(file, 2)
        assert next(ranges).images == 2
        with pytest.raises(TarError):
            list(ranges)
        with pytest.raises(TarError):
            list(tar_images(file, "a.tar"))


def test_a_range_that_is_not_there_is_an_error(tmp_path):
    with write_tar(tmp_path / "a.tar", COUNT).open("rb") as file, pytest.raises(TarError, match=f"{COUNT}.*8"):
        list(tar_images(file, "a.tar", 0, 8))


def test_a_member_that_is_too_large_is_not_read(tmp_path):
    entry = tarfile.TarInfo("huge.png")
    entry.size = MAX_CONTENT_BYTES + 1
    (tmp_path / "a.tar").write_bytes(entry.tobuf())
    with open(tmp_path / "a.tar", "rb") as file:
        ((name, image),) = list(tar_images(file, "a.tar", 0, 1))
    assert (name, isinstance(image, UnreadableFile)) == ("a.tar/huge.png", True)
