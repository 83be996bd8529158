import numpy as np
import pytest

from images import fill
from tigranet import TIGraNet
from tigranet.workflows.labelled_data import load_labelled_data
from tigranet.workflows.saved_run import SavedRun

NETWORK = TIGraNet("SC[2,2]-S[2]", 2, image_size=12)


def test_all_images_of_a_folder_have_paths(tmp_path):
    data = load_labelled_data(NETWORK, SavedRun(), fill(tmp_path / "p", {"a": 3, "b": 4}))
    assert data.images.images.shape == (7, 1, 12, 12)
    assert data.name(0) == str(tmp_path / "p" / "a" / "000.png")


def test_images_of_an_array_file_have_numbers(tmp_path):
    np.savez(tmp_path / "p.npz", images=np.zeros((4, 12, 12), np.uint8), labels=[0, 0, 1, 1])
    data = load_labelled_data(NETWORK, SavedRun(), tmp_path / "p.npz")
    assert data.paths is None
    assert data.name(2) < data.name(10)


def test_of_a_data_set_the_training_images_are_used(small):
    data = load_labelled_data(NETWORK, SavedRun(), small)
    assert data.images is small.train
    with pytest.raises(ValueError, match="nowhere"):
        load_labelled_data(NETWORK, SavedRun(), "nowhere")
