import numpy as np
import pytest
from PIL import Image

from tigranet.data.sources.eth80 import CLASSES, find_eth80, load_eth80


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """All 3280 files as they were published, but tiny: the class in red, the object in green, the view in blue."""
    folder = tmp_path_factory.mktemp("data")
    for label, name in enumerate(CLASSES):
        for number in range(1, 11):
            place = folder / "eth80-cropped256" / f"{name}{number}"
            place.mkdir(parents=True)
            for view in range(41):
                image = Image.new("RGB", (2, 2), (10 * label, 10 * number, view))
                image.save(place / f"{name}{number}-{view // 8 * 22:03d}-{view % 8 * 45:03d}.png")
            (place / "maps").mkdir()
            Image.new("L", (2, 2)).save(place / "maps" / f"{name}{number}-000-000-map.png")
    return folder


def test_the_original_files_are_read_in_order(original):
    views = load_eth80(original)
    assert views.images.shape == (3280, 50, 50, 3)
    np.testing.assert_array_equal(views.images[:, 0, 0, 0], 10 * views.labels)
    np.testing.assert_array_equal(np.sort(np.unique(views.objects)), np.arange(80))
    assert (np.diff(views.labels) >= 0).all()
    assert (np.diff(views.objects) >= 0).all()
    assert views.images[:41, 0, 0, 2].tolist() == list(range(41))
    assert len(find_eth80(original)) == 3280  # the segmentation maps are no views


def test_a_missing_view_is_noticed(original):
    gone = original / "eth80-cropped256" / "cup3" / "cup3-000-000.png"
    content = gone.read_bytes()
    gone.unlink()
    with pytest.raises(ValueError, match=r"ETH-80 has 3280 views, 410 a class, of 80 objects; .* has 3279 of 80"):
        load_eth80(original)
    gone.write_bytes(content)


def test_nothing_there_and_nothing_whole(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no ETH-80 in .*: put eth80\.npz there, or the folder"):
        load_eth80(tmp_path)
    (tmp_path / "eth80.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"eth80\.npz' cannot be read as NumPy's"):
        load_eth80(tmp_path)


@pytest.mark.parametrize("images", [np.zeros((100, 50, 50, 3), np.uint8), np.zeros((3280, 2, 2, 3), np.float32)])
def test_images_of_another_number_size_or_type_are_refused(tmp_path, images):
    labels, numbers = np.repeat(np.arange(8), 410), np.tile(np.repeat(np.arange(10), 41), 8)
    np.savez(tmp_path / "eth80.npz", images=images, label=labels, object_id=numbers)
    with pytest.raises(
        ValueError, match=r"bytes of shape \(3280, 50, 50, 3\) for as many labels; .* has (uint8|float32) of"
    ):
        load_eth80(tmp_path)


def test_the_real_file(real_data):
    views = load_eth80(real_data)
    assert np.bincount(views.objects).tolist() == [41] * 80
