import pytest
import torch
import torch.nn.functional as F

from tigranet.baselines.filter_gradient import convolve, filter_gradient


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("ins", "outs", "side"), [(4, 5, 7), (3, 2, 3), (1, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_convolution_and_gradients_are_those_of_pytorch(ins, outs, side, dtype, memory_format):
    maps = torch.rand(3, ins, 6, 9, dtype=dtype).contiguous(memory_format=memory_format).requires_grad_()
    filters = torch.randn(outs, ins, side, side, dtype=dtype, requires_grad=True)
    weights = torch.randn(3, outs, 6, 9, dtype=dtype)
    results = []
    for function in (convolve, lambda maps, filters: F.conv2d(maps, filters, padding=side // 2)):
        convolved = function(maps, filters)
        results.append([convolved.detach(), *torch.autograd.grad((convolved * weights).sum(), (maps, filters))])
    torch.testing.assert_close(*results)


def test_16_bit_numbers_are_summed_in_higher_precision():
    maps, gradient = torch.rand(8, 6, 10, 10), torch.randn(8, 5, 10, 10)
    expected = filter_gradient(maps.double(), gradient.double(), 3)
    result = filter_gradient(maps.bfloat16(), gradient.bfloat16(), 3)
    assert result.dtype == torch.bfloat16
    assert (result - expected).norm() < 0.01 * expected.norm()


def test_only_the_needed_gradients_are_computed():
    maps, filters = torch.rand(2, 3, 5, 5), torch.rand(4, 3, 3, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(convolve(maps, filters).sum(), filters)
    assert gradient.shape == filters.shape
    maps.requires_grad_()
    (gradient,) = torch.autograd.grad(convolve(maps, filters.detach()).sum(), maps)
    assert gradient.shape == maps.shape
