import pytest
import torch

from images import fill
from tigranet.data import LabelledImages
from tigranet.data.shards.shard_folder import open_shards
from tigranet.training.batch_reader import read_ahead, read_batch
from tigranet.workflows.shard_images import write_shards


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    photos = fill(folder / "photos", {"a": 6, "b": 5}, size=(8, 8))
    return open_shards(write_shards(photos, folder / "shards", workers=1).folder).images.balanced()


@pytest.mark.parametrize("ahead", [False, True])
def test_a_process_reads_its_rows_only(stored, ahead):
    indices, rows = torch.tensor([9, 3, 7, 0]), torch.tensor([1, 3])
    if ahead:
        read_ahead(stored, indices, rows)
    batch = read_batch(stored, indices, rows)
    assert torch.equal(batch.images[rows], stored.images[indices[rows]])
    assert batch.images[[0, 2]].count_nonzero() == 0
    assert torch.equal(batch.labels, stored.labels[indices])
    assert torch.equal(batch.weights, stored.weights[indices])


def test_without_rows_everything_is_read(stored):
    indices = torch.tensor([2, 1])
    read_ahead(stored, indices)
    assert torch.equal(read_batch(stored, indices).images, stored.images[indices])


def test_a_process_without_rows_reads_nothing(stored, monkeypatch):
    monkeypatch.setattr("builtins.open", None)
    rows = torch.zeros(0, dtype=torch.int64)
    read_ahead(stored, torch.tensor([1]), rows)
    assert read_batch(stored, torch.tensor([1]), rows).images.count_nonzero() == 0


def test_images_in_memory_are_indexed():
    data = LabelledImages(torch.rand(4, 1, 2, 2), torch.arange(4))
    indices = torch.tensor([3, 0])
    read_ahead(data, indices)
    assert torch.equal(read_batch(data, indices, torch.tensor([0])).images, data.images[indices])
