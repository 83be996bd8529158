import json

import numpy as np
import pytest
import torch

from images import fill
from tigranet.data.shards.shard_files import MANIFEST, ROW, read_index, shard_name, write_index
from tigranet.data.shards.shard_folder import open_shards
from tigranet.data.user_data import load_user_data
from tigranet.workflows.shard_images import write_shards


@pytest.fixture
def photos(tmp_path):
    return fill(tmp_path / "photos", {"a": 12, "b": 13}, size=(8, 8))


@pytest.fixture
def shards(photos, tmp_path):
    return write_shards(photos, tmp_path / "shards", images_per_shard=10, workers=1).folder


def assert_same_data(stored, expected):
    for part in ("train", "validation", "test"):
        there, here = getattr(stored, part), getattr(expected, part)
        assert torch.equal(there.images[:], here.images)
        assert torch.equal(there.labels, here.labels)
    assert (stored.class_names, stored.groups, stored.duplicates) == (
        expected.class_names,
        expected.groups,
        expected.duplicates,
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_shards_are_split_like_the_folder(photos, shards, seed):
    (photos / "a" / "copy.png").write_bytes((photos / "a" / "000.png").read_bytes())  # after the shards were written
    (photos / "a" / "copy.png").unlink()
    assert_same_data(load_user_data(shards, seed)[0], load_user_data(photos, seed)[0])


def test_duplicates_are_excluded_as_in_the_folder(photos, tmp_path):
    for number in range(6):
        (photos / "a" / f"copy{number}.png").write_bytes((photos / "a" / "000.png").read_bytes())
    (photos / "b" / "copy.png").write_bytes((photos / "a" / "001.png").read_bytes())
    shards = write_shards(photos, tmp_path / "shards", workers=1).folder
    expected = load_user_data(photos)[0]
    assert expected.duplicates.duplicate_images == 7
    assert expected.duplicates.conflicting_images == 2
    stored = load_user_data(shards)[0]
    assert stored.duplicates.excluded_test == expected.duplicates.excluded_test
    assert torch.equal(stored.train.images[:], expected.train.images)


def test_groups_and_parts_are_kept(photos, tmp_path):
    for part in ("train", "val"):
        (tmp_path / "parts").mkdir(exist_ok=True)
        fill(tmp_path / "parts" / part, {"a": 4, "b": 4}, size=(8, 8), seed=len(part))
    for source, group in ((photos, r"(\d)\.png"), (tmp_path / "parts", None)):
        output = tmp_path / f"shards of {source.name}"
        write_shards(source, output, group=group, workers=1)
        assert_same_data(load_user_data(output)[0], load_user_data(source, group=group)[0])


def test_options_of_other_images_are_refused(shards):
    for options, expected in (({"size": 9}, "9"), ({"color": True}, "grey"), ({"group": "x"}, "--group 'x'")):
        with pytest.raises(ValueError, match=expected) as error:
            open_shards(shards, **options)
        assert str(shards) in str(error.value)
        assert "tigranet data shard" in str(error.value)
    assert open_shards(shards, size=8).manifest.size == 8


@pytest.mark.parametrize("suffix", [".tar", ".npz"])
def test_a_missing_file_is_named(shards, suffix):
    (shards / shard_name(1, suffix)).unlink()
    with pytest.raises(ValueError, match=r"shard-000001.tar"):
        open_shards(shards)


@pytest.mark.parametrize(("field", "value"), [("label", 2), ("bits", 16), ("channels", 2), ("position", 3)])
def test_an_index_that_contradicts_the_manifest_is_refused(shards, field, value):
    plan = json.loads((shards / MANIFEST).read_text())["plan"]
    index = read_index(shards, 0, plan)
    rows = np.array(index.rows, ROW)
    rows[field][:2] = value
    write_index(shards, plan, index._replace(rows=rows))
    with pytest.raises(ValueError, match="contradict"):
        open_shards(shards)
