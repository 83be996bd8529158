import pytest

from images import fill
from shortened_results import shorten_results
from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages


@pytest.fixture(autouse=True)
def _shortened_results(request):
    shorten_results(request)


@pytest.fixture
def folder(tmp_path):
    """A folder of small images, in one sub-folder per class."""
    return fill(tmp_path / "photos", {"a": 20, "b": 20})


@pytest.fixture
def model(tmp_path):
    """A saved network for the images of that folder, not trained."""
    path = tmp_path / "model"
    TIGraNet("SC[2,2]-DP[40]-S[2]", 2, class_names=["a", "b"], image_size=12).save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def small(mnist_012) -> DataSet:
    """Thirty digits, which are training, validation and test images at the same time."""
    images = LabelledImages(mnist_012.train.images[:30], mnist_012.train.labels[:30])
    return DataSet("small", mnist_012.class_names, images, images, images, is_upright=True)
