"""The margin around images, compared with NumPy and in onnxruntime."""

from statistics import median_low

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from export.conftest import run
from export.traced_function import in_onnxruntime
from tigranet.layers.background_margin import add_margin
from tigranet.testing import SQUARE

SHAPES = [(1, 1), (1, 2), (1, 6), (5, 1), (2, 2), (2, 5), (3, 3), (7, 4), (9, 12)]


def padded_by_numpy(image, margin):
    """Put one channel into an array of the lower median of its border pixels, each of which counts once."""
    height, width = image.shape
    border = np.ones((height, width), bool)
    border[1:-1, 1:-1] = False
    result = np.full((height + 2 * margin, width + 2 * margin), median_low(image[border].tolist()))
    result[margin : margin + height, margin : margin + width] = image
    return result


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_margin_is_the_lower_median_of_the_border(shape, dtype):
    images = torch.rand(3, 2, *shape, dtype=dtype)
    for margin in (1, 4):
        expected = [[padded_by_numpy(channel, margin) for channel in image.numpy()] for image in images]
        assert torch.equal(add_margin(images, margin), torch.tensor(np.array(expected), dtype=dtype))


@pytest.mark.parametrize("shape", SHAPES)
def test_quarter_turns_and_reflections_change_no_bit(shape):
    images = torch.rand(4, 2, *shape)
    for name, move in SQUARE.items():
        assert torch.equal(add_margin(move(images), 3), move(add_margin(images, 3))), name


@pytest.mark.parametrize("background", [0.0, 0.3, 1.0])
def test_an_object_on_less_than_half_of_the_border_does_not_change_the_margin(background):
    images = torch.full((1, 1, 8, 8), background)
    images[..., :6, 3:] = 0.6  # 10 of 28 border pixels
    added = torch.ones(12, 12, dtype=torch.bool)
    added[2:-2, 2:-2] = False
    assert (add_margin(images, 2)[0, 0, added] == background).all()
    assert (F.pad(images, (2, 2, 2, 2), mode="replicate")[0, 0, added] != background).any()


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # PyTorch's own forward differentiation uses it
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 3)])
def test_gradients_of_both_orders(shape):
    images = torch.rand(2, 2, *shape, dtype=torch.float64, requires_grad=True)

    def square(x):
        return add_margin(x, 2) ** 2

    assert gradcheck(square, images, check_forward_ad=True)
    assert gradgradcheck(square, images)


def test_gradients_are_allowed_with_deterministic_algorithms():
    images = torch.rand(2, 1, 5, 6, requires_grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        add_margin(images, 2).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert float(images.grad.sum()) == pytest.approx(2 * 9 * 10)
    assert ((images.grad > 1).sum((2, 3)) == 1).all()  # the pixel of the median has the gradient of the margin, too


def test_no_images_are_no_images():
    assert add_margin(torch.rand(0, 2, 5, 3), 4).shape == (0, 2, 13, 11)


def test_in_onnxruntime_every_bit_is_the_same():
    session = in_onnxruntime(lambda images: add_margin(images, 2), torch.rand(2, 2, 4, 5))
    for shape in SHAPES:
        images = torch.rand(3, 2, *shape)
        assert torch.equal(run(session, images), add_margin(images, 2)), shape
