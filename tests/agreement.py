"""Compare two versions of an operation: the result, and every gradient.

A statistic that is closer to float64 than the reference passes. Errors of gradients are measured relative to the terms
that are added up to make them, or to the largest gradient where that is larger: on constant or tiny maps the terms
cancel to a thousandth, and the reference is then as far from the truth (float64) as any other version. The term of the
variance is |t| minus its mean. On the CPU this difference counts, because t equals that of the reference to the bit; on
the GPU, where t is computed backwards from the last order, |t| counts.
"""

import torch
from torch import Tensor

from tigranet import GridLaplacian, SpectralConv, Statistics
from tigranet.ops import using
from tigranet.ops.grid_spec import GridSpec

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def statistics(mode: str, order: int, z: Tensor, grid: GridLaplacian, active: Tensor | None, g: Tensor):
    """Return the statistics and the gradient by ``z``; ``mode`` is plain, fused or emulated (the CUDA kernels)."""
    if mode == "emulated":
        from tigranet.ops.cuda import statistics as kernels

        spec = GridSpec.of(grid)
        phi = kernels.forward(z, active, order, spec)
        return phi, kernels.backward(g, phi, z, active, order, Statistics.ROUNDING, spec)
    z = z.detach().requires_grad_()
    with using(mode):
        phi = Statistics(order)(z, grid, active)
        return phi.detach(), torch.autograd.grad(phi, z, g)[0]


def assert_statistics_agree(mode: str, order: int, z: Tensor, grid: GridLaplacian, active: Tensor | None, rng):
    shape = (z.shape[0], z.shape[1] * 2 * (order + 1))
    g = torch.from_numpy(rng.standard_normal(shape)).to(z)
    actual, g_actual = statistics(mode, order, z, grid, active, g)
    expected, g_expected = statistics("plain", order, z, grid, active, g)
    assert actual.shape == expected.shape == shape
    assert actual.dtype == expected.dtype
    mean, variance = expected.reshape(*z.shape[:2], -1, 2).unbind(-1)
    scale = torch.stack((mean, variance + mean**2), dim=-1).reshape(shape)
    case = f"{grid!r}, order {order}, {z.dtype}, {tuple(z.shape)}, strides {z.stride()}, {active is not None}"
    truth = statistics("plain", order, z.double(), grid, active, g.double())[0]
    is_closer = (actual - truth).abs() <= (expected - truth).abs()  # the reference may be off by more than 1e-5 itself
    assert_within(actual.where(~is_closer, expected), expected, scale, f"statistics of {case}")
    by_mean, by_variance = g.abs().reshape(*z.shape[:2], -1, 2).unbind(-1)
    size = (variance if z.device.type == "cpu" and mode == "fused" else variance + mean**2).sqrt()
    terms = (by_mean + 2 * by_variance * size).sum(-1, keepdim=True) / z.shape[-1]
    scale = terms.maximum(g_expected.abs().amax(-1, keepdim=True))
    assert_within(g_actual, g_expected, scale, f"gradient of {case}")


def convolution(mode: str, conv: SpectralConv, y: Tensor, grid: GridLaplacian, omega: Tensor | None, g: Tensor):
    """Return the filtered maps and the gradients by ``y``, alpha and beta."""
    if mode == "emulated":
        from tigranet.ops.cuda import convolution as kernels

        with torch.no_grad():
            z = kernels.forward(y, conv.alpha, conv.beta, omega, GridSpec.of(grid))
            return z, kernels.backward(g, y, conv.alpha, conv.beta, omega, True, GridSpec.of(grid))
    y = y.detach().requires_grad_()
    with using(mode):
        z = conv(y, grid, omega)
        return z.detach(), torch.autograd.grad(z, (y, conv.alpha, conv.beta), g)


def assert_convolutions_agree(mode: str, conv: SpectralConv, y: Tensor, grid: GridLaplacian, omega: Tensor | None, rng):
    """The maps agree to the bit, the gradients within the tolerance."""
    shape = (y.shape[0], conv.out_maps, y.shape[2])
    g = torch.from_numpy(rng.standard_normal(shape)).to(y)
    actual, g_actual = convolution(mode, conv, y, grid, omega, g)
    expected, g_expected = convolution("plain", conv, y, grid, omega, g)
    case = f"{grid!r}, degree {conv.degree}, {y.dtype}, {tuple(y.shape)}, strides {y.stride()}, {omega is not None}"
    assert torch.equal(actual, expected), f"maps of {case}"
    filtered = conv.alpha.abs().sum() * g.abs().max()
    scales = filtered * conv.beta.max(), 2**conv.degree * y.abs().sum() * g.abs().max(), filtered * y.abs().sum()
    for name, mine, other, scale in zip(("y", "alpha", "beta"), g_actual, g_expected, scales, strict=True):
        assert_within(mine, other, scale, f"gradient by {name} of {case}")


def assert_within(actual: Tensor, expected: Tensor, scale: Tensor, case: str) -> None:
    error = ((actual - expected).abs() / (TOLERANCE[expected.dtype] * scale)).where(actual != expected, 0)
    assert not (error > 1).any(), f"{float(error.max()):.3g} times the tolerance: {case}"
    assert not error.isnan().any(), f"not a number: {case}"
