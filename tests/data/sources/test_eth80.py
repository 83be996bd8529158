import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.data.sources.eth80 import CLASSES, ETH80, ETH80_COLOR, FILES, load_eth80


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """All 3280 original files, but of 2x2 pixels: red is the class, green the object, blue the view."""
    folder = tmp_path_factory.mktemp("data")
    for label, name in enumerate(CLASSES):
        for number in range(1, 11):
            object_folder = folder / "eth80-cropped256" / f"{name}{number}"
            object_folder.mkdir(parents=True)
            for view in range(41):
                image = Image.new("RGB", (2, 2), (10 * label, 10 * number, view))
                image.save(object_folder / f"{name}{number}-{view // 8 * 22:03d}-{view % 8 * 45:03d}.png")
            (object_folder / "maps").mkdir()
            Image.new("L", (2, 2)).save(object_folder / "maps" / f"{name}{number}-000-000-map.png")
    return folder


def test_the_original_files_are_sorted_by_class_object_and_view(original):
    views = load_eth80(original)
    assert views.images.shape == (3280, 50, 50, 3)
    np.testing.assert_array_equal(views.images[:, 0, 0, 0], 10 * views.labels)
    np.testing.assert_array_equal(np.sort(np.unique(views.objects)), np.arange(80))
    assert (np.diff(views.labels) >= 0).all()
    assert (np.diff(views.objects) >= 0).all()
    assert views.images[:41, 0, 0, 2].tolist() == list(range(41))
    assert len(FILES.find(original)) == 3280  # without the segmentation maps


def test_a_missing_view_is_reported(original):
    path = original / "eth80-cropped256" / "cup3" / "cup3-000-000.png"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(ValueError, match=r"3280 views of 80 objects, 410 per class.*got 3279 views of 80 objects"):
        load_eth80(original)
    path.write_bytes(content)


def test_the_error_for_missing_files_names_the_folder_and_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"no ETH-80 in '{tmp_path}'.*eth80\.npz.*TIGRANET_DATA"):
        load_eth80(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "eth80.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"eth80\.npz"):
        load_eth80(tmp_path)


@pytest.mark.parametrize(
    ("images", "values"),
    [
        (np.zeros((100, 50, 50, 3), np.uint8), r"uint8 of shape \(100, 50, 50, 3\)"),
        (np.zeros((3280, 2, 2, 3), np.float32), r"float32 of shape \(3280, 2, 2, 3\)"),
    ],
)
def test_images_of_another_number_size_or_type_are_refused(tmp_path, images, values):
    labels, numbers = np.repeat(np.arange(8), 410), np.tile(np.repeat(np.arange(10), 41), 8)
    np.savez(tmp_path / "eth80.npz", images=images, label=labels, object_id=numbers)
    with pytest.raises(ValueError, match=rf"uint8 of shape \(3280, 50, 50, 3\), got {values}.*eth80\.npz"):
        load_eth80(tmp_path)


def test_the_pools_are_in_colour_and_in_grey(tmp_path):
    labels, numbers = np.repeat(np.arange(8), 410), np.tile(np.repeat(np.arange(10), 41), 8)
    colours = np.random.default_rng(0).integers(0, 256, (3280, 1, 1, 3), dtype=np.uint8)
    images = np.broadcast_to(colours, (3280, 50, 50, 3))
    np.savez(tmp_path / "eth80.npz", images=images, label=labels, object_id=numbers)
    assert ETH80.there(tmp_path)
    color, grey = (source.load_pool(tmp_path) for source in (ETH80_COLOR, ETH80))
    assert torch.equal(color.images.images, torch.from_numpy(images.copy()).permute(0, 3, 1, 2) / 255)
    red, green, blue = color.images.images.unbind(1)
    torch.testing.assert_close(grey.images.images[:, 0], 0.299 * red + 0.587 * green + 0.114 * blue)
    for pool in (color, grey):
        assert pool.images.labels.tolist() == labels.tolist()
        assert torch.bincount(pool.objects).tolist() == [41] * 80
        assert pool.test_images is None


def test_the_real_file(real_data):
    views = load_eth80(real_data)
    assert np.bincount(views.objects).tolist() == [41] * 80
