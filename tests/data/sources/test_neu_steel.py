import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.data import load
from tigranet.data.sources.neu_steel import CLASSES, FILES, NEU_STEEL, PREFIXES, load_neu_steel


@pytest.fixture
def original(tmp_path):
    """All 1800 original files, each of one grey value that tells class and number, and a file of another name."""
    folder = tmp_path / "NEU-CLS"
    folder.mkdir()
    for label, prefix in enumerate(PREFIXES):
        for number in range(1, 301):
            Image.new("L", (8, 8), 40 * label + number % 40).save(folder / f"{prefix}_{number}.bmp")
    Image.new("L", (8, 8)).save(folder / "thumbnail_1.bmp")
    return tmp_path


def test_the_original_files_are_sorted_by_class_and_number(original):
    steel = load_neu_steel(original)
    assert steel.images.shape == (1800, 64, 64)
    assert len(FILES.find(original)) == 1800
    assert steel.labels.tolist() == [label for label in range(6) for _ in range(300)]
    expected = [40 * label + number % 40 for label in range(6) for number in range(1, 301)]
    assert steel.images[:, 30, 30].tolist() == expected


def test_a_missing_image_is_reported(original, tmp_path):
    (original / "NEU-CLS" / "In_7.bmp").unlink()
    with pytest.raises(
        ValueError, match=r"300 images of each of the 6 .*got 300, 299, 300, 300, 300, 300 in '.*NEU-CLS"
    ):
        load_neu_steel(original)


def test_the_error_for_missing_files_names_the_folder_and_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"no NEU steel .*'{tmp_path}'.*neu_steel64\.npz.*TIGRANET_DATA"):
        load_neu_steel(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "neu_steel64.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"neu_steel64\.npz"):
        load_neu_steel(tmp_path)


@pytest.mark.parametrize(
    ("images", "values"),
    [
        (np.zeros((1800, 8, 8), np.uint8), r"uint8 of shape \(1800, 8, 8\)"),
        (np.zeros((1800, 64, 64)), r"float64 of shape \(1800, 64, 64\)"),
    ],
)
def test_images_of_another_size_or_type_are_refused(tmp_path, images, values):
    np.savez(tmp_path / "neu_steel64.npz", images=images, label=np.repeat(np.arange(6), 300))
    with pytest.raises(ValueError, match=rf"uint8 of shape \(1800, 64, 64\), got {values}.*neu_steel64\.npz"):
        load_neu_steel(tmp_path)


def test_the_data_set_depends_on_the_seed_and_no_image_is_in_two_parts(tmp_path):
    images = np.zeros((1800, 64, 64), np.uint8)
    images[:, 0, 0], images[:, 0, 1] = np.divmod(np.arange(1800), 256)
    np.savez(tmp_path / "neu_steel64.npz", images=images, label=np.repeat(np.arange(6), 300))
    assert NEU_STEEL.there(tmp_path)
    data, other = load("neu-steel", 0, tmp_path), load("neu-steel", 1, tmp_path)
    assert data.class_names == CLASSES
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [300, 0, 1500]
    corners = [(part.images[:, 0, 0, :2] * 255).round().tolist() for part in (data.train, data.test)]
    assert len({tuple(corner) for part in corners for corner in part}) == 1800
    assert not torch.equal(data.train.images, other.train.images)
    assert data.test_motion.rotated
    assert data.test_motion.padding == "reflection"


def test_the_real_file(real_data):
    steel = load_neu_steel(real_data)
    assert steel.images.dtype == np.uint8
    assert steel.images.shape == (1800, 64, 64)
