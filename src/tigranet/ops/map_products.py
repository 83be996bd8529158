r"""The operation that mixes maps: the product of one matrix with the maps of each image.

.. math:: z_b = A\, y_b, \qquad g^y_b = A^T g_b, \qquad g^A = \sum_b g_b\, y_b^T

PyTorch computes these products with Intel's library MKL. On processors of other makers, MKL uses vectors of half the
width that AVX-512 has. Our own kernels use the whole width where that is faster: AMD's Zen 4 computes a vector of this
width in two halves, its successors at once. They divide the nodes of all images among threads,
and the result at a node has the same bits whatever the batch is and wherever the node lies.
"""

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import VECTOR_BYTES, as_array
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported
from tigranet.torch_compat import constant_while_tracing

MIN_ROWS = 8
"""Smallest number of rows and of columns of a matrix for our kernels, which compute this many rows at a time."""
WORK_PER_PRODUCT = 16
"""Number of multiply-adds that count as one step at one node, in the work that :func:`share` compares."""

HALVED_VECTORS = ("znver4",)
"""CPUs of AMD, by LLVM's names, that compute a vector of AVX-512 in two halves. MKL reaches their peak."""


@operation
def mix(
    weights: Float[Tensor, "out_maps in_maps"], y: Float[Tensor, "batch in_maps nodes"]
) -> Float[Tensor, "batch out_maps nodes"]:
    """Combine maps linearly, in the same way at each node.

    Under autocast a matrix product returns half precision, which no Laplacian reads; the result has the type of ``y``.

    Args:
        weights: The weights of the maps.
        y: Maps.

    Returns:
        The mixtures.
    """
    return torch.bmm(weights.expand(len(y), -1, -1), y).to(y.dtype)  # matmul would copy y


@mix.fused
def _fused(weights: Tensor, y: Tensor) -> Tensor:
    return _product(weights, y) if kernels_pay(weights, y) else mix.reference(weights, y)


def kernels_pay(weights: Tensor, y: Tensor) -> bool:
    """Return whether our kernels are expected to be faster than PyTorch's products.

    Args:
        weights: The matrix.
        y: The maps.

    Returns:
        True on a CPU whose vectors MKL does not use, for maps and matrices that are not tiny.
    """
    if y.device.type != "cpu" or torch.is_autocast_enabled("cpu") or why_unsupported(y, weights) is not None:
        return False
    is_large = min(weights.shape) >= MIN_ROWS and y.shape[2] * y.itemsize >= VECTOR_BYTES and len(y) > 0
    return is_large and kernels_are_faster()


@constant_while_tracing
def kernels_are_faster() -> bool:
    """Return whether PyTorch's matrix products compute at half of the speed that the vectors of this CPU have."""
    return _mkl_has_half_speed()


@cache
def _mkl_has_half_speed() -> bool:
    if not torch.backends.mkl.is_available():
        return False
    from llvmlite import binding

    name = binding.get_host_cpu_name()
    is_amd = name.startswith("znver") and name not in HALVED_VECTORS
    return is_amd and bool(binding.get_host_cpu_features().get("avx512f"))


def mix_into(out: Tensor, weights: Tensor, y: Tensor) -> None:
    """Mix maps on the CPU, without a gradient.

    Args:
        out: Where the mixtures are stored, (batch, out_maps, nodes), contiguous.
        weights: The weights of the maps, (out_maps, in_maps).
        y: The maps, (batch, in_maps, nodes).
    """
    if not kernels_pay(weights, y):
        torch.bmm(weights.expand(len(y), -1, -1), y, out=out)
        return
    from tigranet.ops.cpu import map_products as kernels

    batch, inner, nodes = y.shape
    arrays = as_array(weights).reshape(-1), as_array(y).reshape(-1), len(weights), inner, nodes
    result = out.numpy().reshape(-1)
    share(
        lambda first, last: kernels.mix(*arrays, first, last, result),
        batch * kernels.panels_per_image(nodes, y.itemsize),
        out.numel() * inner // WORK_PER_PRODUCT,
    )


def weight_gradient_into(out: Tensor, g: Tensor, y: Tensor) -> None:
    """Compute the gradient of the weights with which maps on the CPU were mixed.

    Args:
        out: Where the sum of g y^T over the batch is stored, (out_maps, in_maps), contiguous.
        g: Gradient by the mixtures, (batch, out_maps, nodes).
        y: The maps, (batch, in_maps, nodes).
    """
    if not kernels_pay(out, y):
        torch.sum(torch.bmm(g, y.transpose(1, 2)), 0, out=out)
        return
    from tigranet.ops.cpu import map_products as kernels

    (batch, inner, nodes), rows = y.shape, len(out)
    arrays = as_array(g).reshape(-1), as_array(y).reshape(-1), rows, inner, nodes, batch
    result = out.numpy().reshape(-1)
    share(
        lambda first, last: kernels.matrix_gradient(*arrays, first, last, result),
        -(-rows // kernels.GRADIENT_ROWS),
        g.numel() * inner // WORK_PER_PRODUCT,
    )


def _reference_backward(g: Tensor, weights: Tensor, y: Tensor, needs_y: bool) -> tuple[Tensor, Tensor]:
    g_weights, g_y = gradients_in_new_thread(mix.reference, (weights, y), (True, needs_y), g)
    assert g_weights is not None
    return g_weights, y.new_empty(0) if g_y is None else g_y


_product = CustomOp("mix", "Tensor weights, Tensor y", "Tensor", mix.reference, grid=False)
_backward = CustomOp(
    "mix_backward",
    "Tensor g, Tensor weights, Tensor y, bool needs_y",
    "(Tensor, Tensor)",
    _reference_backward,
    grid=False,
)


@_product.implementation("cpu")
def _cpu(weights: Tensor, y: Tensor) -> Tensor:
    z = _empty(weights, y)
    mix_into(z, weights.detach(), y.detach())
    return z


@_backward.implementation("cpu")
def _cpu_backward(g: Tensor, weights: Tensor, y: Tensor, needs_y: bool) -> tuple[Tensor, Tensor]:
    g, weights, y = g.detach(), weights.detach(), y.detach()
    g_weights, g_y = _empty_gradients(g, weights, y, needs_y)
    if needs_y:
        mix_into(g_y, weights.t(), g)
    weight_gradient_into(g_weights, g, y)
    return g_weights, g_y


@_product.shapes
def _empty(weights: Tensor, y: Tensor) -> Tensor:
    return y.new_empty(len(y), len(weights), y.shape[2])


@_backward.shapes
def _empty_gradients(g: Tensor, weights: Tensor, y: Tensor, needs_y: bool) -> tuple[Tensor, Tensor]:
    g_weights = torch.empty_like(weights, memory_format=torch.contiguous_format)
    return g_weights, y.new_empty(y.shape if needs_y else 0)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


@_product.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    weights, y = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(mix.reference, (weights, y), ctx.needs_input_grad[:2], g)
    needs_y = ctx.needs_input_grad[1]
    g_weights, g_y = _backward(g, weights, y, needs_y)
    return g_weights, g_y if needs_y else None
