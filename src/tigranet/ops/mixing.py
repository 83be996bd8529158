"""The fully-mixed convolution's operation: mix maps, then sum Chebyshev polynomials of the mixtures.

On a CPU all mixtures of a large batch are more than a cache holds, and writing them to memory to read them again takes
as long as the matrix product that makes them. The fused version therefore processes a few images at a time. On a GPU,
and where a cache holds all mixtures, it is the matrix product followed by the fused sum. On a torus, the CPU mixes
Fourier coefficients instead where this takes fewer operations (:mod:`tigranet.ops.spectral_mixing`).
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian
from tigranet.ops import spectral_mixing
from tigranet.ops.chebyshev import basis_into, chebyshev_sum, sum_into
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.map_products import mix, mix_into, weight_gradient_into
from tigranet.torch_compat import constant_while_tracing

MAX_MIXTURE_BYTES = 8 * 1024 * 1024
"""Approximate size of the mixtures that are made before they are read: few enough for the last cache of a laptop, and
enough that threads rarely wait for each other."""
MAX_MIXTURE_BYTES_OF_ONE_THREAD = 2 * 1024 * 1024
"""The same where PyTorch uses one thread. It waits for no other, and what it mixes stays in the cache of its core."""


@operation
def mixed_chebyshev_sum(
    weights: Float[Tensor, "orders_and_maps in_maps"],
    y: Float[Tensor, "batch in_maps nodes"],
    laplacian: Laplacian,
    degree: int,
) -> Float[Tensor, "batch maps nodes"]:
    r"""Mix maps to :math:`u_0, \dots, u_M`, M = ``degree``, and compute :math:`\sum_m T_m(L - I)\, u_m`.

    Args:
        weights: ((degree + 1) * maps, in_maps): the weights of all maps of :math:`u_0`, then of :math:`u_1`, and so on.
        y: Maps.
        laplacian: The graph.
        degree: The highest order M.

    Returns:
        The sums.
    """
    return chebyshev_sum.reference(mix.reference(weights, y), laplacian, degree)


@mixed_chebyshev_sum.supported_by_kernels
def _check(weights: Tensor, y: Tensor, laplacian: Any, degree: int) -> str | None:
    return why_unsupported(y, weights, laplacian=laplacian)


@mixed_chebyshev_sum.fused
def _fused(weights: Tensor, y: Tensor, laplacian: Any, degree: int) -> Tensor:
    if y.is_cuda or torch.is_autocast_enabled("cpu"):
        return chebyshev_sum(mix(weights, y), laplacian, degree)
    grid = GridSpec.of(laplacian)
    fits_in_cache = len(y) * _bytes_per_image(weights, y) <= _max_mixture_bytes()
    if fits_in_cache and not spectral_mixing.pays(weights, y, degree, grid):
        return chebyshev_sum(mix(weights, y), laplacian, degree)
    return forward(weights, y, degree, grid)


def _reference(weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    return mixed_chebyshev_sum.reference(weights, y, grid.laplacian, degree)


def _reference_backward(g: Tensor, weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> tuple[Tensor, Tensor]:
    inputs = (weights, y, degree, grid)
    g_weights, g_y, *_ = gradients_in_new_thread(_reference, inputs, (True, True, False, False), g)
    assert g_weights is not None
    assert g_y is not None
    return g_weights, g_y


forward = CustomOp("mixed_chebyshev_sum", "Tensor weights, Tensor y, int degree", "Tensor", _reference)
backward = CustomOp(
    "mixed_chebyshev_sum_backward",
    "Tensor g, Tensor weights, Tensor y, int degree",
    "(Tensor, Tensor)",
    _reference_backward,
)


@forward.implementation("cpu")
def _cpu(weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    weights, y = weights.detach(), y.detach()
    if spectral_mixing.pays(weights, y, degree, grid):
        return spectral_mixing.forward(weights, y, degree, grid)
    z = y.new_empty(len(y), len(weights) // (degree + 1), y.shape[2])
    for part, u in _parts(weights, y):
        mix_into(u, weights, y[part])
        sum_into(z[part], u, degree, grid)
    return z


@backward.implementation("cpu")
def _cpu_backward(g: Tensor, weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> tuple[Tensor, Tensor]:
    g, weights, y = g.detach(), weights.detach(), y.detach()
    if spectral_mixing.pays(weights, y, degree, grid):
        return spectral_mixing.backward(g, weights, y, degree, grid)
    g_weights, g_y = torch.zeros_like(weights, memory_format=torch.contiguous_format), y.new_empty(y.shape)
    g_weights_of_part = torch.empty_like(g_weights)
    for part, t in _parts(weights, y):
        basis_into(t, g[part], degree, grid)
        mix_into(g_y[part], weights.t(), t)
        weight_gradient_into(g_weights_of_part, t, y[part])
        g_weights += g_weights_of_part
    return g_weights, g_y


@constant_while_tracing
def _max_mixture_bytes() -> int:
    """Return the largest size of the mixtures that are made before they are read."""
    if torch.get_num_threads() > 1:
        return MAX_MIXTURE_BYTES
    return min(MAX_MIXTURE_BYTES, MAX_MIXTURE_BYTES_OF_ONE_THREAD)


def _bytes_per_image(weights: Tensor, y: Tensor) -> int:
    """Return the size of the mixtures of one image."""
    return len(weights) * y.shape[2] * y.itemsize


def _parts(weights: Tensor, y: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield a few images at a time, with memory for their mixtures that all parts share."""
    count = max(1, _max_mixture_bytes() // max(1, _bytes_per_image(weights, y)))
    mixtures = y.new_empty(min(count, len(y)), len(weights), y.shape[2])
    for first in range(0, len(y), count):
        yield slice(first, first + count), mixtures[: len(y) - first]


@forward.shapes
def _shape(weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    return y.new_empty(len(y), len(weights) // (degree + 1), y.shape[2])


@backward.shapes
def _shape_backward(g: Tensor, weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weights, memory_format=torch.contiguous_format), y.new_empty(y.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    weights, y, *ctx.rest = inputs
    ctx.save_for_backward(weights, y)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    weights, y = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(_reference, (weights, y, *ctx.rest), ctx.needs_input_grad[:4], g)
    return (*backward(g, weights, y, *ctx.rest), None, None)
