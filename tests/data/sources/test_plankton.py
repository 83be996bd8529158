import numpy as np
import pytest
import torch

from tigranet.data import load
from tigranet.data.sources import plankton
from tigranet.data.sources.plankton import CLASSES, NPZ_NAME, PLANKTON, load_plankton
from tigranet.data.sources.registry import check_sources


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes 242 images, two per class, which are accepted as plankton."""
    monkeypatch.setattr(plankton, "NUM_IMAGES", 242)
    images = np.random.default_rng(0).integers(0, 256, (242, 64, 64), dtype=np.uint8)
    arrays = {"images": images, "label": np.arange(242, dtype=np.uint8) % 121, "class_names": np.array(CLASSES)}

    def write_arrays(**changes):
        np.savez(tmp_path / NPZ_NAME, **(arrays | changes))
        return arrays["images"]

    return write_arrays


def test_there_are_121_classes_with_names_in_alphabetical_order():
    assert len(set(CLASSES)) == 121
    assert list(CLASSES) == sorted(CLASSES)


def test_the_pool_has_bytes_of_one_channel(write, tmp_path):
    images = write()
    assert PLANKTON.there(tmp_path)
    pool = PLANKTON.load_pool(tmp_path)
    assert torch.equal(pool.images.images, torch.from_numpy(images)[:, None])
    assert pool.images.labels.tolist() == [label % 121 for label in range(242)]
    assert pool.test_images is None
    assert check_sources(tmp_path)["plankton"] == "good: 242 images of 121 classes"


def test_the_error_for_missing_files_names_the_folder_and_the_file(tmp_path):
    assert not PLANKTON.there(tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"no plankton in '{tmp_path}'.*plankton64\.npz.*TIGRANET_DATA"):
        load_plankton(tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / NPZ_NAME).write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"plankton64\.npz"):
        load_plankton(tmp_path)


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"images": np.zeros((241, 64, 64), np.uint8)}, r"\(242, 64, 64\), got uint8 of shape \(241, 64, 64\)"),
        ({"images": np.zeros((242, 64, 64), np.float32)}, "got float32"),
        ({"label": np.zeros(242, np.uint8)}, "242 labels of 121 classes, got 242 of 1"),
        ({"label": np.arange(241, dtype=np.uint8) % 121}, "242 labels of 121 classes, got 241 of 121"),
        ({"label": np.full(242, 121, np.uint8)}, "from 0 to 120, got 121 to 121"),
        ({"label": np.zeros(242)}, "from 0 to 120.*float64"),
        ({"class_names": np.array(CLASSES[:-1])}, "121 classes.*got 120 other names"),
        ({"class_names": np.array(CLASSES[::-1])}, "121 classes.*alphabetical.*got 121 other names"),
        ({"class_names": np.array("one")}, "121 classes.*got 1 other names"),
    ],
)
def test_other_arrays_are_refused(write, tmp_path, changes, received):
    write(**changes)
    with pytest.raises(ValueError, match=rf"{received}.*plankton64\.npz"):
        load_plankton(tmp_path)


def test_the_real_file(real_data):
    if not (real_data / NPZ_NAME).is_file():
        pytest.skip(f"needs {NPZ_NAME} in the folder in TIGRANET_DATA")
    data = load("plankton", folder=real_data)
    sizes = [torch.bincount(part.labels, minlength=121) for part in (data.train, data.validation, data.test)]
    assert [int(size.sum()) for size in sizes] == [22_836, 1_500, 6_000]
    assert all(size.min() >= 1 for size in sizes)
    total = sum(sizes)
    assert (total.min(), total.max()) == (9, 1979)
    assert ((sizes[2] - total * (6_000 / 30_336)).abs() < 1).all()  # the largest remainder
    assert data.test.images[:, 0, 0, 0].median() == 1  # on white
