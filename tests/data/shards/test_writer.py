import hashlib
import io
import tarfile

import numpy as np
import pytest
import torch

from images import fill, save
from tigranet.data.leakage import hash_images, hash_pictures
from tigranet.data.letterbox import read_letterboxed
from tigranet.data.shards.shard_files import read_index, shard_name
from tigranet.data.shards.writer import ShardImage, write_shard


def shard_image(position, path, label=0, group=None):
    return ShardImage(position, path, path.name, label, "", group)


@pytest.fixture
def photos(tmp_path):
    """A grey image of the requested size, one that is resized, and a file that is no image."""
    folder = fill(tmp_path / "photos", {"a": 1}, size=(8, 8))
    save(folder / "a" / "wide.png", np.arange(12 * 9, dtype=np.uint8).reshape(9, 12))
    (folder / "a" / "bad.png").write_bytes(b"no image")
    return [shard_image(number, path, number) for number, path in enumerate(sorted((folder / "a").iterdir()))]


@pytest.fixture
def shard(tmp_path, photos):
    write_shard(tmp_path, 3, photos, plan="plan", size=8, color=False)
    return tmp_path / shard_name(3)


def test_the_members_are_those_that_webdataset_expects(shard, photos):
    """One label and one array per image, beside each other, with the pixels that a training in memory has."""
    expected = dict(read_letterboxed([image.path for image in photos], 8, False))
    with tarfile.open(shard) as archive:
        contents = {member.name: archive.extractfile(member).read() for member in archive}
    assert list(contents) == ["000000000.cls", "000000000.npy", "000000002.cls", "000000002.npy"]
    for image in (photos[0], photos[2]):
        key = f"{image.position:09d}"
        array = np.load(io.BytesIO(contents[f"{key}.npy"]))
        pixels = array.astype(np.float32) / np.float32(255) if array.dtype == np.uint8 else array
        assert np.array_equal(pixels, expected[image.path].numpy())
        assert contents[f"{key}.cls"] == str(image.label).encode()


def test_pixels_take_8_bits_where_that_loses_nothing(shard):
    """The image of the requested size has 8-bit values; resizing gives values between them."""
    index = read_index(shard.parent, 3, "plan")
    assert index.rows["bits"].tolist() == [8, 32]


def test_the_index_says_where_the_numbers_begin(shard):
    content = shard.read_bytes()
    for row in read_index(shard.parent, 3, "plan").rows:
        count = 64 * row["bits"] // 8
        with tarfile.open(shard) as archive:
            member = archive.extractfile(f"{row['position']:09d}.npy").read()
        assert content[row["offset"] : row["offset"] + count] == member[-count:]


def test_the_index_has_the_checksum_and_the_hashes(shard, photos):
    index = read_index(shard.parent, 3, "plan")
    assert index.summary.sha256 == hashlib.sha256(shard.read_bytes()).hexdigest()
    assert index.summary.num_bytes == shard.stat().st_size
    images = torch.stack([image for _, image in read_letterboxed([photos[0].path, photos[2].path], 8, False)])
    assert [f"{number:016x}" for number in index.rows["content"]] == hash_images(images)
    assert [f"{number:016x}" for number in index.rows["picture"]] == hash_pictures(images)


def test_unreadable_files_are_listed_with_the_reason(shard):
    index = read_index(shard.parent, 3, "plan")
    ((name, reason),) = index.unreadable
    assert name == "bad.png"
    assert "not an image" in reason
    assert index.names == ("000.png", "wide.png")


def test_the_same_files_give_the_same_bytes(shard, tmp_path, photos):
    other = tmp_path / "other"
    other.mkdir()
    write_shard(other, 3, photos, plan="plan", size=8, color=False, threads=1)
    for suffix in (".tar", ".npz"):
        assert (other / shard_name(3, suffix)).read_bytes() == (tmp_path / shard_name(3, suffix)).read_bytes()


def test_every_file_is_counted(tmp_path, photos):
    steps = []
    write_shard(tmp_path, 0, photos, plan="plan", size=8, color=False, step=lambda: steps.append(1))
    assert len(steps) == 3
