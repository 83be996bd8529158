"""With preprocessing, a client gives pixels and gets probabilities, the same as with the library."""

import numpy as np
import pytest
import torch

from export.conftest import calibrated, run, session_of
from tigranet.data.luminance import array_to_grey
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("window", ["none", "disc"])
def test_pixels_to_probabilities(channels, window):
    net = calibrated("MC[4,2]-OP[2]-S[1]", channels, window=window)
    interface = model_interface(net, preprocess=True)
    session = session_of(build_onnx(interface))
    given = 3 if channels == 1 else channels
    pixels = torch.randint(0, 256, (4, 9, 12, given), dtype=torch.uint8)
    images = pixels.numpy().astype(np.float32) / 255
    images = torch.from_numpy(array_to_grey(images) if channels == 1 else images).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = net(images.contiguous()).softmax(1)
        torch.testing.assert_close(interface.reference(pixels), expected)
    probabilities = run(session, pixels)
    torch.testing.assert_close(probabilities, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(4))


def test_a_grey_image_as_three_equal_channels():
    net = calibrated("SC[2,2]-S[2]", 1)
    pixels = torch.randint(0, 256, (2, 8, 9, 1), dtype=torch.uint8)
    probabilities = model_interface(net, preprocess=True).module(pixels.expand(-1, -1, -1, 3))
    expected = net((pixels / 255).permute(0, 3, 1, 2)).softmax(1)
    torch.testing.assert_close(probabilities, expected, rtol=1e-4, atol=1e-5)
