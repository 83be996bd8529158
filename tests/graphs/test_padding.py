import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from tigranet.graphs.padding import pad_images

CASES = [(rows, columns) for rows in (False, True) for columns in (False, True)]


def padded_by_index(images, border, wrap_rows, wrap_columns):
    for axis, wraps in ((-2, wrap_rows), (-1, wrap_columns)):
        size = images.shape[axis]
        positions = torch.arange(-border, size + border)
        positions = positions % size if wraps else positions.clamp(0, size - 1)
        images = images.index_select(axis, positions)
    return images


@pytest.mark.parametrize(("wrap_rows", "wrap_columns"), CASES)
@pytest.mark.parametrize("border", [0, 1, 2, 5, 9])
def test_every_pixel_is_the_one_at_its_position(border, wrap_rows, wrap_columns):
    for shape in [(4, 5), (2, 1, 3), (2, 3, 6, 4)]:
        images = torch.rand(shape)
        expected = padded_by_index(images, border, wrap_rows, wrap_columns)
        assert torch.equal(pad_images(images, border, wrap_rows, wrap_columns), expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # PyTorch's own forward differentiation uses it
@pytest.mark.parametrize(("wrap_rows", "wrap_columns"), CASES)
def test_gradients_of_both_orders(wrap_rows, wrap_columns):
    images = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)

    def square(x):
        return pad_images(x, 2, wrap_rows, wrap_columns) ** 2

    assert gradcheck(square, images, check_forward_ad=True)
    assert gradgradcheck(square, images)


def test_it_works_under_functorch_transforms():
    images = torch.rand(3, 2, 4, 4)

    def loss(x):
        return pad_images(x, 1, False, True).square().sum()

    expected = torch.stack([torch.func.grad(loss)(image) for image in images])
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(images), expected)


def test_the_memory_format_is_kept():
    images = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
    padded = pad_images(images, 1, False, False)
    assert padded.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(padded, F.pad(images, (1, 1, 1, 1), mode="replicate"))
    assert pad_images(torch.rand(2, 3, 4, 5), 1, False, False).is_contiguous()


COMPILED = """
import torch
from tigranet.graphs.padding import pad_images

compiled = torch.compile(pad_images, fullgraph=True, backend="aot_eager")
images = torch.rand(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
g = torch.rand(2, 3, 8, 9, dtype=torch.float64)
for wrap_rows, wrap_columns in [(False, False), (True, False), (True, True)]:
    results = []
    for pad in (compiled, pad_images):
        padded = pad(images, 2, wrap_rows, wrap_columns)
        results.append((padded.detach(), *torch.autograd.grad(padded, images, g)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)
"""


def test_a_compiler_can_trace_it(warm_process):
    """Runs in a process of its own without type checks, which a compiler cannot trace."""
    result = warm_process.run(COMPILED)
    assert result.returncode == 0, result.stderr
