"""Benchmark of the spectral convolution, as in the second layer of the ``paper`` network: 10 to 20 maps, degree 4."""

from functools import partial

import torch

from benchmarks.timing import DEVICE, Row, compare, saved_megabytes, with_gradients, without_gradients
from tigranet import GridLaplacian, SpectralConv
from tigranet.ops import using


def measure() -> list[Row]:
    """Time the convolution for several image sizes."""
    sizes = {26: 100, 50: 25, 128: 4} if DEVICE.type == "cpu" else {26: 500, 50: 200}
    return [row for size, batch in sizes.items() for row in at_size(size, batch)]


def at_size(size: int, batch: int) -> list[Row]:
    """Time the forward pass, and the forward and backward pass, for images of one size."""
    grid, layer = GridLaplacian(size, size), SpectralConv(10, 20, 4).to(DEVICE)
    y = torch.randn(batch, 10, size * size).to(DEVICE).requires_grad_()
    omega = torch.rand(batch, 1, size * size).to(DEVICE) < 0.9
    functions = {mode: partial(_convolve, mode, layer, y, grid, omega) for mode in ("fused", "plain")}
    saved = {mode: saved_megabytes(function) for mode, function in functions.items()}
    forward = {mode: without_gradients(function) for mode, function in functions.items()}
    both = {mode: with_gradients(function, [y, layer.alpha, layer.beta]) for mode, function in functions.items()}
    return compare("convolution", size, forward) + compare("convolution, with backward", size, both, saved)


def _convolve(mode, layer, y, grid, omega):
    with using(mode):
        return layer(y, grid, omega)
