import numpy as np
import pytest
import torch

from images import fill, save
from tigranet.data.image_hashes import content_hash
from tigranet.data.leakage import hash_images, hash_pictures
from tigranet.data.shards.shard_files import read_index, shard_name
from tigranet.data.shards.shard_folder import open_shards
from tigranet.data.user_data import read_user_images
from tigranet.workflows.shard_images import write_shards


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("stored") / "photos", {"a": 9, "b": 10}, size=(7, 8))


@pytest.fixture(scope="module")
def shards(photos):
    return write_shards(photos, photos.parent / "shards", images_per_shard=6, workers=1).folder


@pytest.fixture(scope="module")
def expected(photos):
    return read_user_images(photos).images


@pytest.fixture
def stored(shards):
    return open_shards(shards).images


@pytest.mark.parametrize(
    "index",
    [3, -1, slice(2, 9), slice(None, None, 5), slice(0, 0), torch.tensor([5, 0, 18, 5]), [1, 2], torch.arange(19)],
    ids=str,
)
def test_indexing_reads_the_images_in_memory(stored, expected, index):
    assert torch.equal(stored.images[index], expected.images[index])
    assert type(stored.images[index]) is torch.Tensor


def test_shape_type_and_labels_are_those_in_memory(stored, expected):
    assert stored.images.shape == expected.images.shape
    assert stored.images.dtype == expected.images.dtype
    assert len(stored.images) == 19
    assert torch.equal(stored.labels, expected.labels)
    assert stored.images.to(torch.device("cpu")) is stored.images


def test_batches_are_those_in_memory(stored, expected):
    batches = stored.images.split(8)
    assert [len(batch) for batch in batches] == [8, 8, 3]
    assert torch.equal(torch.cat(list(batches)), expected.images)
    assert torch.equal(torch.stack(list(stored.images)), expected.images)


def test_rows_are_selected_without_reading(stored, expected, monkeypatch):
    rows = torch.tensor([4, 2, 11])
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", None)
        selected = stored.images.select_rows(rows)
        twice = selected.select_rows(torch.tensor([2, 0]))
    assert torch.equal(selected[:], expected.images[rows])
    assert torch.equal(twice[:], expected.images[[11, 4]])


def test_what_was_read_ahead_is_not_read_again(stored, expected, monkeypatch):
    rows = torch.tensor([4, 2, 11])
    stored.images.read_ahead(rows)
    stored.images._ahead[1].result()
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", None)
        assert torch.equal(stored.images[rows], expected.images[rows])
    assert torch.equal(stored.images[rows], expected.images[rows])


def test_other_rows_than_those_read_ahead_are_right(stored, expected):
    stored.images.read_ahead(torch.tensor([4, 2, 11]))
    assert torch.equal(stored.images[torch.tensor([4, 2, 12])], expected.images[[4, 2, 12]])


def test_hashes_are_those_in_memory(stored, expected, monkeypatch):
    whole = content_hash(stored.images)
    monkeypatch.setattr("builtins.open", None)  # they are stored
    assert hash_images(stored.images) == hash_images(expected.images)
    assert hash_pictures(stored.images) == hash_pictures(expected.images)
    assert whole == content_hash(expected.images)


@pytest.mark.parametrize(
    "operation",
    [lambda x: x.mean(), lambda x: torch.cat([x, x]), lambda x: x.to(torch.float64), lambda x: x.isfinite()],
)
def test_an_operation_on_all_pixels_is_refused(stored, operation):
    with pytest.raises(TypeError, match="shards"):
        operation(stored.images)


def test_indices_of_pixels_and_other_axes_are_refused(stored):
    with pytest.raises(TypeError, match="2"):
        stored.images[0, 0]
    with pytest.raises(TypeError, match="got 1"):
        stored.images.split(2, 1)
    with pytest.raises(IndexError, match="7"):
        stored.images.split(8)[7]


def test_the_fingerprint_depends_on_the_order(stored):
    first, second = (stored.images.select_rows(torch.tensor(rows)).fingerprint for rows in ([0, 1], [1, 0]))
    assert first != second
    assert first == stored.images.select_rows(torch.tensor([0, 1])).fingerprint


def test_grey_images_among_colour_images_are_repeated(tmp_path):
    folder = fill(tmp_path / "photos", {"a": 2, "b": 1}, size=(8, 8))
    save(folder / "b" / "colour.png", np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8))
    write_shards(folder, tmp_path / "shards", color=True, workers=1)
    stored, expected = (read_user_images(path, color=True).images for path in (tmp_path / "shards", folder))
    assert stored.images.shape == expected.images.shape == (4, 3, 8, 8)
    assert torch.equal(stored.images[:], expected.images)
    assert hash_images(stored.images) == hash_images(expected.images)


def test_grey_images_are_repeated_for_a_network_that_reads_colours(stored, expected):
    assert torch.equal(stored.images.in_three_channels()[:3], expected.images[:3].expand(-1, 3, -1, -1))
    assert "19" in repr(stored.images)


def test_a_changed_pixel_is_noticed(photos, tmp_path):
    folder = write_shards(photos, tmp_path / "shards", workers=1).folder
    row = read_index(folder, 0, open_shards(folder).manifest.plan).rows[0]
    path = folder / shard_name(0)
    content = bytearray(path.read_bytes())
    content[row["offset"] + 7] ^= 1
    path.write_bytes(content)
    images = open_shards(folder).images.images
    with pytest.raises(ValueError, match=rf"image {row['position']} in .*shard-000000.tar.* damaged"):
        images[int(row["position"])]
