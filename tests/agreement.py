"""Two versions of an operation compared: forward, and every gradient.

A statistic that is nearer to float64 than the plain one agrees. Gradients are measured against the size of the terms
that are added to make them, or against their own largest where that is more: on constant or tiny maps the terms cancel
to a thousandth, and the plain version is then as far from the truth (float64) as any other. The term of the variance
is |t| minus its mean: on the CPU the difference is what counts, as t is the plain version's to the bit; on the GPU,
where t is computed back from the last order, |t| does.
"""

import torch
from torch import Tensor

from tigranet import GridLaplacian, SpectralConv, Statistics
from tigranet.ops import cuda, using
from tigranet.ops.grid_spec import describe

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


def statistics(mode: str, order: int, z: Tensor, grid: GridLaplacian, active: Tensor | None, g: Tensor):
    """The statistics and the gradient by ``z``; ``mode`` is plain, fused or emulated (CUDA's, on the CPU)."""
    if mode == "emulated":
        phi = cuda.cuda_statistics(z, active, order, Statistics.ROUNDING, *describe(grid))
        return phi, cuda.cuda_statistics_backward(g, phi, z, active, order, Statistics.ROUNDING, *describe(grid))
    z = z.detach().requires_grad_()
    with using(mode):
        phi = Statistics(order)(z, grid, active)
    return phi.detach(), torch.autograd.grad(phi, z, g)[0]


def assert_statistics_agree(mode: str, order: int, z: Tensor, grid: GridLaplacian, active: Tensor | None, rng):
    shape = (z.shape[0], z.shape[1] * 2 * (order + 1))
    g = torch.from_numpy(rng.standard_normal(shape)).to(z)
    (came, g_came), (wanted, g_wanted) = (statistics(each, order, z, grid, active, g) for each in (mode, "plain"))
    assert came.shape == wanted.shape == shape
    assert came.dtype == wanted.dtype
    mean, variance = wanted.reshape(*z.shape[:2], -1, 2).unbind(-1)
    scale = torch.stack((mean, variance + mean**2), dim=-1).reshape(shape)
    what = f"{grid!r}, order {order}, {z.dtype}, {tuple(z.shape)}, strides {z.stride()}, {active is not None}"
    truth = statistics("plain", order, z.double(), grid, active, g.double())[0]
    nearer = (came - truth).abs() <= (wanted - truth).abs()  # the plain version's own rounding can be more than 1e-5
    assert_within(came.where(~nearer, wanted), wanted, scale, f"statistics of {what}")
    by_mean, by_variance = g.abs().reshape(*z.shape[:2], -1, 2).unbind(-1)
    size = (variance if z.device.type == "cpu" and mode == "fused" else variance + mean**2).sqrt()
    terms = (by_mean + 2 * by_variance * size).sum(-1, keepdim=True) / z.shape[-1]
    assert_within(g_came, g_wanted, terms.maximum(g_wanted.abs().amax(-1, keepdim=True)), f"gradient of {what}")


def convolution(mode: str, conv: SpectralConv, y: Tensor, grid: GridLaplacian, omega: Tensor | None, g: Tensor):
    """The filtered maps and the gradients by ``y``, alpha and beta."""
    if mode == "emulated":
        with torch.no_grad():
            z = cuda.cuda_convolution(y, conv.alpha, conv.beta, omega, *describe(grid))
            return z, cuda.cuda_convolution_backward(g, y, conv.alpha, conv.beta, omega, True, *describe(grid))
    y = y.detach().requires_grad_()
    with using(mode):
        z = conv(y, grid, omega)
    return z.detach(), torch.autograd.grad(z, (y, conv.alpha, conv.beta), g)


def assert_convolutions_agree(mode: str, conv: SpectralConv, y: Tensor, grid: GridLaplacian, omega: Tensor | None, rng):
    """The maps to the bit."""
    shape = (y.shape[0], conv.out_maps, y.shape[2])
    g = torch.from_numpy(rng.standard_normal(shape)).to(y)
    (came, g_came), (wanted, g_wanted) = (convolution(each, conv, y, grid, omega, g) for each in (mode, "plain"))
    what = f"{grid!r}, degree {conv.degree}, {y.dtype}, {tuple(y.shape)}, strides {y.stride()}, {omega is not None}"
    assert torch.equal(came, wanted), f"maps of {what}"
    filtered = conv.alpha.abs().sum() * g.abs().max()
    scales = filtered * conv.beta.max(), 2**conv.degree * y.abs().sum() * g.abs().max(), filtered * y.abs().sum()
    for name, mine, other, scale in zip(("y", "alpha", "beta"), g_came, g_wanted, scales, strict=True):
        assert_within(mine, other, scale, f"gradient by {name} of {what}")


def assert_within(came: Tensor, wanted: Tensor, scale: Tensor, what: str) -> None:
    off = ((came - wanted).abs() / (TOLERANCE[wanted.dtype] * scale)).where(came != wanted, 0)
    assert not (off > 1).any(), f"{float(off.max()):.3g} times the tolerance: {what}"
    assert not off.isnan().any(), f"not a number: {what}"
