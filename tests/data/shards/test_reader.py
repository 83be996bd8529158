from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from images import fill
from tigranet.data.shards.reader import READ_TOGETHER, ShardReader
from tigranet.data.shards.shard_files import read_manifest
from tigranet.data.user_data import read_user_images
from tigranet.workflows.shard_images import write_shards


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("reader") / "photos", {"a": 15, "b": 14}, size=(8, 7))


@pytest.fixture(scope="module")
def reader(photos):
    folder = write_shards(photos, photos.parent / "shards", images_per_shard=4, workers=1).folder
    return ShardReader(folder, read_manifest(folder))


@pytest.fixture(scope="module")
def expected(photos):
    return read_user_images(photos).images


@pytest.mark.parametrize("count", [0, 1, READ_TOGETHER, READ_TOGETHER + 1, 29])
def test_images_are_those_of_the_source_in_any_order(reader, expected, count):
    """Whether one thread reads them, or several."""
    positions = np.random.default_rng(count).permutation(29)[:count]
    assert torch.equal(reader.read(positions, 1), expected.images[positions])
    assert torch.equal(reader.labels, expected.labels)


def test_several_threads_read_at_once(reader, expected):
    orders = [np.random.default_rng(seed).permutation(29) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for positions, images in zip(orders, pool.map(lambda order: reader.read(order, 3), orders), strict=True):
            assert torch.equal(images, expected.images[positions].expand(-1, 3, -1, -1))


def test_a_tensor_that_was_read_in_inference_mode_is_usable(reader):
    with torch.inference_mode():
        images = reader.read(np.arange(20), 1)
    assert images.shape == (20, 1, 8, 8)


def test_hashes_of_repeated_images_are_not_stored(reader):
    assert list(reader.hashes(np.arange(2), 3, "content")) == [None, None]
    assert list(reader.hashes(np.array([3]), 1, "content")) == [int(reader.rows["content"][3])]
