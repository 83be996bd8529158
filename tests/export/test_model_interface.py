import pytest
import torch

from export.conftest import PYRAMID, calibrated
from tigranet.export.model_interface import model_interface


@pytest.mark.parametrize("preprocess", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_example_fits_the_network(preprocess, channels):
    interface = model_interface(calibrated(PYRAMID, channels), preprocess)
    example = interface.example()
    assert example.dtype == interface.dtype
    assert interface.module(example).shape == interface.reference(example).shape == (2, 3)
    assert interface.metadata["channels"] == str(example.shape[-1 if preprocess else 1])


def test_the_least_side_keeps_two_pixels():
    interface = model_interface(calibrated(PYRAMID))
    assert interface.min_side == 16
    assert interface.network(torch.rand(1, 2, 16, 16)).shape == (1, 3)


def test_a_client_knows_the_order_of_colours():
    assert model_interface(calibrated("SC[2,2]-S[2]", 3), preprocess=True).metadata["channel_order"] == "RGB"
    assert "channel_order" not in model_interface(calibrated("SC[2,2]-S[2]", 2), preprocess=True).metadata
