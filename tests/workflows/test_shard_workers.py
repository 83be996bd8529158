import os
import signal
from functools import partial

import pytest

from images import fill
from tigranet.data.shards.shard_files import MANIFEST
from tigranet.data.shards.writer import write_shard
from tigranet.workflows import shard_images
from tigranet.workflows.shard_images import write_shards
from tigranet.workflows.shard_workers import run_workers


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_several_processes_write_the_same_bytes_and_a_killed_one_is_an_error(tmp_path, monkeypatch):
    photos = fill(tmp_path / "photos", {"a": 10, "b": 9}, size=(8, 8))
    write = partial(write_shards, photos, images_per_shard=5)
    expected = content(write(tmp_path / "expected", workers=1).folder)
    output = tmp_path / "shards"
    monkeypatch.setattr(shard_images, "write_shard", _die_in_the_last_shard)
    with pytest.raises(RuntimeError, match="continues"):
        write(output, workers=2)
    monkeypatch.undo()
    assert not (output / MANIFEST).exists()
    assert write(output, workers=1).resumed_shards >= 1
    assert content(output) == expected


def _die_in_the_last_shard(folder, number, images, **options):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return write_shard(folder, number, images, **options)


def test_one_worker_is_this_process():
    """So nothing has to be started, and each file can be counted."""
    steps = []

    def write(number, images, step):
        step()
        return number, os.getpid()

    results = list(run_workers(write, iter([(0, []), (1, [])]), 1, lambda: steps.append(1)))
    assert results == [(0, os.getpid()), (1, os.getpid())]
    assert len(steps) == 2
