"""Shards are written completely or not at all, whatever happens, and always with the same bytes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from images import fill, save
from tigranet.data.shards.shard_files import MANIFEST, read_manifest, shard_name
from tigranet.workflows.shard_images import write_shards
from tigranet.workflows.train import train


@pytest.fixture
def photos(tmp_path):
    folder = fill(tmp_path / "photos", {"a": 9, "b": 9}, size=(8, 8))
    (folder / "a" / "bad.png").write_bytes(b"no image")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def write(photos, output, **options):
    return write_shards(photos, output, images_per_shard=5, **({"workers": 1} | options))


def test_every_image_is_in_exactly_one_shard(photos, tmp_path):
    result = write(photos, tmp_path / "shards")
    assert (result.images, result.shards, result.resumed_shards) == (18, 4, 0)
    assert (result.class_names, result.size, result.channels) == (("a", "b"), 8, 1)
    manifest = read_manifest(result.folder)
    assert sum(shard.images for shard in manifest.shards) == 18


@pytest.mark.parametrize(("options", "channels"), [({}, 3), ({"color": True}, 3), ({"color": False}, 1)])
def test_colors_are_kept_unless_the_user_wants_grey_images(tmp_path, options, channels):
    rng = np.random.default_rng(0)
    for number in range(12):
        save(tmp_path / "photos" / "ab"[number % 2] / f"{number}.png", rng.integers(0, 256, (9, 9, 3), np.uint8))
    assert write(tmp_path / "photos", tmp_path / "shards", **options).channels == channels
    trained = train(tmp_path / "shards", architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    assert trained.network.in_maps == channels


def test_unreadable_files_are_in_the_result_and_in_the_manifest(photos, tmp_path):
    result = write(photos, tmp_path / "shards")
    ((path, reason),) = result.unreadable_files
    assert path == Path("a/bad.png")
    assert "not an image" in reason
    values = json.loads((result.folder / MANIFEST).read_text())
    assert values["unreadable"] == [{"path": "a/bad.png", "reason": reason}]


class Killed(Exception):
    pass


@pytest.mark.parametrize("writes", range(1, 5))
def test_a_run_that_stops_at_any_file_continues_to_the_same_bytes(photos, tmp_path, monkeypatch, writes):
    """Each of the two shards is two files, and the run ends while one of them is written."""
    options = {"images_per_shard": 10, "workers": 1}
    expected = content(write_shards(photos, tmp_path / "expected", **options).folder)
    output, count = tmp_path / "shards", 0
    replace = os.replace

    def stop(source, target):
        nonlocal count
        if Path(target).parent == output and not Path(target).name.startswith("plan"):
            count += 1
            if count == writes:
                raise Killed
        replace(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(Killed):
        write_shards(photos, output, **options)
    monkeypatch.undo()
    assert not (output / MANIFEST).exists()
    result = write_shards(photos, output, **options)
    assert result.resumed_shards == (writes - 1) // 2
    assert content(output) == expected


def test_a_finished_folder_is_left_alone(photos, tmp_path):
    first = write(photos, tmp_path / "shards")
    times = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    assert write(photos, tmp_path / "shards").resumed_shards == 4
    assert times == {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}


def test_a_damaged_shard_is_written_again(photos, tmp_path):
    folder = write(photos, tmp_path / "shards").folder
    expected = content(folder)
    (folder / shard_name(2)).write_bytes(b"")
    assert write(photos, folder).resumed_shards == 3
    assert content(folder) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"size": 9}, ["size", "8", "9"]), ({"color": True}, ["color"]), ({"group": "(.)"}, ["group", "None", "'(.)'"])],
)
def test_other_options_are_refused(photos, tmp_path, options, expected):
    write(photos, tmp_path / "shards")
    with pytest.raises(ValueError, match="begin again") as error:
        write(photos, tmp_path / "shards", **options)
    assert all(text in str(error.value) for text in expected)


@pytest.mark.parametrize("change", ["new", "removed", "changed"])
def test_a_changed_folder_is_refused(photos, tmp_path, change):
    write(photos, tmp_path / "shards")
    path = photos / "a" / ("new.png" if change == "new" else "000.png")
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes((photos / "b" / "001.png").read_bytes() + b" ")
    with pytest.raises(ValueError, match="have changed") as error:
        write(photos, tmp_path / "shards")
    assert str(photos) in str(error.value)


def test_folders_of_something_else_are_refused(photos, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        write(photos, other)
    with pytest.raises(ValueError, match="inside the folder"):
        write(photos, photos / "shards")
    shards = write(photos, tmp_path / "shards").folder
    with pytest.raises(ValueError, match="has shards already"):
        write(shards, tmp_path / "again")


def test_wrong_sources_are_refused(tmp_path, photos):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write(tmp_path / "nowhere", tmp_path / "shards")
    (tmp_path / "photos.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"photos\.npz"):
        write(tmp_path / "photos.npz", tmp_path / "shards")
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        write(photos, tmp_path / "shards", workers=0)
    with pytest.raises(ValueError, match="images_per_shard must be at least 1, got 0"):
        write_shards(photos, tmp_path / "shards", images_per_shard=0)


def test_a_folder_without_readable_images_is_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "bad.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="none of the 2 images"):
        write(tmp_path / "photos", tmp_path / "shards", size=8)


def test_a_table_is_a_source(photos, tmp_path):
    table = photos / "table.csv"
    table.write_text("path,label\na/000.png,x\nb/001.png,y\na/000.png,x\n")
    result = write(table, tmp_path / "shards")
    assert (result.images, result.class_names) == (2, ("x", "y"))
    assert read_manifest(result.folder).repeated_rows == 1


def test_the_shards_have_images_of_all_classes(tmp_path):
    """The images are distributed at random, so that a program that reads whole shards sees a mixture."""
    photos = fill(tmp_path / "photos", {"a": 20, "b": 20}, size=(4, 4))
    folder = write_shards(photos, tmp_path / "shards", images_per_shard=10, workers=1).folder
    from tigranet.data.shards.shard_folder import open_shards

    reader = open_shards(folder).images.images.reader
    counts = torch.zeros(4, 2)
    for shard, label in zip(reader.shards.tolist(), reader.rows["label"].tolist(), strict=True):
        counts[shard, label] += 1
    assert counts.min() > 0


def test_a_cross_validation_on_shards_is_refused(photos, tmp_path):
    folder = write(photos, tmp_path / "shards").folder
    with pytest.raises(ValueError, match=f"'{folder.name}'.*leave out folds"):
        train(folder, folds=2)
