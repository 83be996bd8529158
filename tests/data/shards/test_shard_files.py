import json

import pytest

from images import fill
from tigranet.data.shards.shard_files import (
    MANIFEST,
    Manifest,
    ShardSummary,
    is_shard_folder,
    read_index,
    read_manifest,
    shard_name,
)
from tigranet.data.shards.writer import ShardImage, write_shard

MANIFEST_VALUE = Manifest(
    ("a", "b"), 8, 1, False, 2, 5, "plan", (ShardSummary(0, 5, 10240, "abc", (1,)),), (("x.png", "is empty"),)
)


@pytest.fixture
def folder(tmp_path):
    photos = fill(tmp_path / "photos", {"a": 2}, size=(8, 8))
    images = [ShardImage(n, path, path.name, 0, "", "g") for n, path in enumerate(sorted(photos.rglob("*.png")))]
    write_shard(tmp_path, 0, images, plan="plan", size=8, color=False)
    return tmp_path


def test_an_index_is_read_as_it_was_written(folder):
    index = read_index(folder, 0, "plan")
    assert (index.summary.number, index.summary.images, index.groups) == (0, 2, ("g", "g"))


def test_the_index_of_another_plan_does_not_count(folder):
    assert read_index(folder, 0, "other") is None


def test_a_shard_that_was_never_written_does_not_count(folder):
    assert read_index(folder, 1, "plan") is None


@pytest.mark.parametrize("suffix", [".tar", ".npz"])
def test_a_shard_that_was_cut_off_does_not_count(folder, suffix):
    path = folder / shard_name(0, suffix)
    path.write_bytes(path.read_bytes()[:-100])
    assert read_index(folder, 0, "plan") is None


def test_an_index_without_its_shard_does_not_count(folder):
    (folder / shard_name(0)).unlink()
    assert read_index(folder, 0, "plan") is None


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    assert not is_shard_folder(tmp_path)
    MANIFEST_VALUE.write(tmp_path)
    assert is_shard_folder(tmp_path)
    assert read_manifest(tmp_path) == MANIFEST_VALUE


def test_the_checksum_changes_with_a_shard():
    other = MANIFEST_VALUE.shards[0]._replace(sha256="abd")
    changed = Manifest(*(*vars(MANIFEST_VALUE).values(),)[:7], (other,), ())
    assert changed.checksum != MANIFEST_VALUE.checksum


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("format", 2, "format 1, got 2"),
        ("images", 6, "6 images"),
        ("size", 0, "size"),
        ("class_names", ["a"], "2 classes"),
        ("shards", 3, "TypeError"),
        ("size", "many", "many"),
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, name, value, expected):
    MANIFEST_VALUE.write(tmp_path)
    values = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(values | {name: value}))
    with pytest.raises(ValueError, match=expected) as error:
        read_manifest(tmp_path)
    assert MANIFEST in str(error.value)
    assert "tigranet data shard" in str(error.value)
