import pytest
import torch

from export.conftest import PYRAMID, calibrated
from tigranet.export.comparison import example_images, largest_difference
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx


@pytest.mark.parametrize("preprocess", [False, True])
def test_a_correct_file_differs_by_rounding_and_a_wrong_one_by_more(preprocess, tmp_path):
    interface = model_interface(calibrated(PYRAMID, image_size=20), preprocess)
    path = tmp_path / "net.onnx"
    path.write_bytes(build_onnx(interface).SerializeToString())
    assert largest_difference(path, interface) == largest_difference(path.read_bytes(), interface) < 1e-4
    with torch.no_grad():
        interface.network.classifier[-1].bias[0] += 1
    assert largest_difference(path, interface) > 0.01


def test_example_images_are_the_same_each_time_and_in_range():
    interface = model_interface(calibrated("SC[2,2]-S[2]"))
    images = example_images(5, 11, 13, interface)
    assert images.shape == (5, 2, 11, 13)
    assert torch.equal(images, example_images(5, 11, 13, interface))
    assert images.min() >= 0
    assert 0.5 < images.max() <= 1
