"""The operation of a group convolution: from padded features to features, by filters that are rotated copies.

PyTorch convolves with the filters between all pairs of orientations. On a CPU, the fused version computes the same sums
by frequencies, in a fifth to a ninth of the multiplications (:mod:`tigranet.ops.orientation_frequencies`).
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.circular_harmonics import circular_harmonics
from tigranet.ops import orientation_frequencies as frequencies
from tigranet.ops.cpu.arrays import VECTOR_BYTES
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported
from tigranet.ops.mode import kernel_mode
from tigranet.ops.orientation_frequencies import ORIENTATIONS, SIZES, matrix_shapes

MAX_BLOCKS = 16
"""Number of blocks of strips whose gradients by the weights are summed by themselves."""
MULTIPLICATIONS_PER_STEP = 16
"""Number of multiplications that count as one step at one node, in the work that :func:`share` compares."""


def rotated_filters(
    weight: Float[Tensor, "out_features in_features in_orientations basis"],
    basis: Float[Tensor, "orientations basis pixels"],
) -> Float[Tensor, "out_maps in_maps size size"]:
    r"""Compute the filters from every input map to every output map.

    Args:
        weight: The weights of a layer.
        basis: The filters of the basis, rotated to each orientation.

    Returns:
        The filter from orientation i to orientation j: the basis, rotated by :math:`\theta_j` and weighted by the
        entry j - i of the weights.
    """
    orientations, size = len(basis), side_length(basis)
    out_features, in_features, in_orientations, _ = weight.shape
    differences = orientation_differences(orientations, in_orientations, weight.device)
    filters = torch.einsum("oajib,jbp->joiap", weight[:, :, differences], basis.to(weight.dtype))
    return filters.reshape(orientations * out_features, in_orientations * in_features, size, size)


def orientation_differences(
    orientations: int, in_orientations: int, device: torch.device | None = None
) -> Int[Tensor, "orientations in_orientations"]:
    """Return the entry j - i of the weights that leads from orientation i to orientation j.

    Args:
        orientations: Number of orientations of the output.
        in_orientations: Number of orientations of the input.
        device: Where to compute them. A copy from another device cannot be part of a CUDA graph.

    Returns:
        One entry for each pair of orientations.
    """
    output, inputs = (torch.arange(number, device=device) for number in (orientations, in_orientations))
    return (output[:, None] - inputs) % in_orientations


@operation
def group_convolution(
    x: Float[Tensor, "batch in_maps padded_height padded_width"],
    weight: Float[Tensor, "out_features in_features in_orientations basis"],
    basis: Float[Tensor, "orientations basis pixels"],
    coefficients: Float[Tensor, " numbers"] | None = None,
) -> Float[Tensor, "batch out_maps height width"]:
    """Convolve padded features with the rotated filters of a layer.

    Args:
        x: Features ordered (orientation, feature), with a border of half the size of a filter.
        weight: The weights of the layer.
        basis: The filters of the basis, rotated to each orientation.
        coefficients: What :func:`orientation_frequencies.coefficients` returns for the weights, if it is known.

    Returns:
        The output features, ordered (orientation, feature).
    """
    return F.conv2d(x, rotated_filters(weight, basis))


@group_convolution.fused
def _fused(x: Tensor, weight: Tensor, basis: Tensor, coefficients: Tensor | None = None) -> Tensor:
    if kernels_pay(x, weight, basis):
        return forward(x, weight, basis, coefficients)
    return group_convolution.reference(x, weight, basis)


def kernels_pay(x: Tensor, weight: Tensor, basis: Tensor) -> bool:
    """Return whether our kernels are expected to be faster than PyTorch's convolution.

    Args:
        x: Padded features.
        weight: The weights of the layer.
        basis: The filters of the basis.

    Returns:
        True on a CPU, in single or double precision, for the orientations and filters that the kernels are made for.
    """
    if x.device.type != "cpu" or kernel_mode() == "plain" or torch.is_autocast_enabled("cpu"):
        return False
    size = side_length(basis)
    if len(basis) != ORIENTATIONS or size not in SIZES or weight.shape[2] != ORIENTATIONS or basis.requires_grad:
        return False
    if x.ndim != 4 or x.shape[1] != ORIENTATIONS * weight.shape[1]:
        return False  # PyTorch's convolution raises an error
    if any(ORIENTATIONS * features * x.itemsize % VECTOR_BYTES for features in weight.shape[:2]):
        return False
    is_empty = not len(x) or min(x.shape[2:]) < size
    return not is_empty and why_unsupported(x.flatten(2), weight, basis) is None


def side_length(basis: Float[Tensor, "orientations basis pixels"]) -> int:
    """Return the side length of the filters of a basis.

    Args:
        basis: The filters, rotated to each orientation.

    Returns:
        The number of pixels.
    """
    return math.isqrt(basis.shape[2])


def _reference(x: Tensor, weight: Tensor, basis: Tensor, coefficients: Tensor | None) -> Tensor:
    return group_convolution.reference(x, weight, basis).contiguous(memory_format=torch.channels_last)


def _reference_backward(g: Tensor, x: Tensor, weight: Tensor, basis: Tensor, needs_x: bool) -> tuple[Tensor, Tensor]:
    needed = (needs_x, True, False)
    g_x, g_weight, _ = gradients_in_new_thread(group_convolution.reference, (x, weight, basis), needed, g)
    assert g_weight is not None
    return x.new_empty(0) if g_x is None else g_x.contiguous(memory_format=torch.channels_last), g_weight


forward = CustomOp(
    "group_convolution",
    "Tensor x, Tensor weight, Tensor basis, Tensor? coefficients",
    "Tensor",
    _reference,
    grid=False,
)
backward = CustomOp(
    "group_convolution_backward",
    "Tensor g, Tensor x, Tensor weight, Tensor basis, bool needs_x",
    "(Tensor, Tensor)",
    _reference_backward,
    grid=False,
)


@cache
def _standard_basis(size: int, dtype: torch.dtype) -> Float[Tensor, "orientations basis pixels"]:
    """Return the basis that the kernels contain."""
    return torch.from_numpy(circular_harmonics(size, ORIENTATIONS)).flatten(2).to(dtype)


def _is_standard(basis: Tensor) -> bool:
    """Return whether a basis is the one of the kernels. A layer that was converted to float64 has a rounded one."""
    return torch.equal(basis.detach(), _standard_basis(side_length(basis), basis.dtype))


@cache
def _transforms(dtype: torch.dtype) -> Any:
    """Return the matrices to and from the components of the orientations, and their transposes for the gradient."""
    there, back = frequencies.forward_transform(), frequencies.inverse_transform()
    return np.stack([matrix.flatten() for matrix in (there, back, back.T, there.T)]).astype(
        torch.empty(0, dtype=dtype).numpy().dtype
    )


class _Geometry(NamedTuple):
    """The numbers that both kernels read."""

    height: int
    width: int
    size: int
    in_features: int
    out_features: int
    lines: int
    """Number of lines of a strip."""

    @classmethod
    def of(cls, x: Tensor, weight: Tensor, basis: Tensor) -> "_Geometry":
        """Read the numbers off the tensors of a convolution."""
        from tigranet.ops.cpu import group_convolution as kernels

        size, (out_features, in_features) = side_length(basis), weight.shape[:2]
        height, width = (side - size + 1 for side in x.shape[2:])
        lines = kernels.strip_lines(height, width, size // 2, in_features, x.itemsize)
        return cls(height, width, size, in_features, out_features, lines)

    def strips(self, parity: int) -> int:
        """Return the number of even or odd strips of an image."""
        return (-(-self.height // self.lines) + 1 - parity) // 2

    @property
    def coefficients(self) -> int:
        """Number of coefficients: of multiplications at a pixel."""
        return sum(math.prod(shape) for shape in matrix_shapes(self.size, self.in_features, self.out_features))

    @property
    def work(self) -> int:
        """Number of multiplications per image, divided by the numbers of a vector."""
        return self.height * self.width * self.coefficients // MULTIPLICATIONS_PER_STEP


def _by_pixel(x: Float[Tensor, "batch maps height width"]) -> Any:
    """Return images pixel by pixel, as a flat array. They are copied unless they are stored like this."""
    return x.detach().permute(0, 2, 3, 1).contiguous().numpy().reshape(-1)


@forward.implementation("cpu")
def _cpu(x: Tensor, weight: Tensor, basis: Tensor, coefficients: Tensor | None) -> Tensor:
    if not _is_standard(basis):
        return _reference(x, weight, basis, coefficients)
    from tigranet.ops.cpu import group_convolution as kernels

    geometry, out = _Geometry.of(x, weight, basis), _empty(x, weight, basis, None)
    if coefficients is None:
        coefficients = frequencies.coefficients(weight.detach(), geometry.size)
    if coefficients.numel() != geometry.coefficients or coefficients.dtype != x.dtype:
        raise ValueError(
            f"expected {geometry.coefficients} coefficients of type {x.dtype} for weights of shape "
            f"{tuple(weight.shape)}, got {coefficients.numel()} of {coefficients.dtype}"
        )
    inputs = _by_pixel(x), *geometry, coefficients.detach().numpy(), _counts(geometry.size), _transforms(x.dtype)
    result = out.permute(0, 2, 3, 1).numpy().reshape(-1)
    items = len(x) * -(-geometry.height // geometry.lines)
    share(lambda first, last: kernels.forward(*inputs, first, last, result), items, len(x) * geometry.work)
    return out


@cache
def _counts(size: int) -> Any:
    """Return the number of terms of each frequency."""
    return np.array([len(of_frequency) for of_frequency in frequencies.terms(size)])


def _call_backward(
    kernel: Callable[..., None], arguments: tuple[Any, ...], sums: Any, g_x: Any, first: int, last: int
) -> None:
    kernel(*arguments, first, last, sums, g_x)


@backward.implementation("cpu")
def _cpu_backward(g: Tensor, x: Tensor, weight: Tensor, basis: Tensor, needs_x: bool) -> tuple[Tensor, Tensor]:
    if not _is_standard(basis):
        return _reference_backward(g, x, weight, basis, needs_x)
    from tigranet.ops.cpu import group_convolution as kernels

    geometry, (g_x, _) = _Geometry.of(x, weight, basis), _empty_gradients(g, x, weight, basis, needs_x)
    shapes = matrix_shapes(geometry.size, geometry.in_features, geometry.out_features)
    stored = [kernels.gradient_shape(*shape, x.itemsize) for shape in shapes]
    coefficients = frequencies.coefficients(weight.detach(), geometry.size, transposed=True).numpy()
    inputs = _by_pixel(g), _by_pixel(x), *geometry, coefficients, _counts(geometry.size), _transforms(x.dtype)
    g_coefficients = x.new_zeros(sum(rows * columns for rows, columns in stored))
    result = g_x.permute(0, 2, 3, 1).numpy().reshape(-1) if needs_x else np.empty(0, inputs[0].dtype)
    for parity in range(2 if geometry.strips(1) else 1):
        strips = len(x) * geometry.strips(parity)
        block = -(-strips // MAX_BLOCKS)
        sums = x.new_zeros(-(-strips // block), len(g_coefficients))
        arguments = *inputs, needs_x, parity, block
        share(
            partial(_call_backward, kernels.backward, arguments, sums.numpy(), result),
            len(sums),
            len(x) * geometry.work,
        )
        g_coefficients += sums.sum(0)
    parts = g_coefficients.split([rows * columns for rows, columns in stored])
    matrices = [
        part.view(size)[: shape[0], : shape[1]] for part, size, shape in zip(parts, stored, shapes, strict=True)
    ]
    return g_x, frequencies.weight_gradient(matrices, geometry.size, geometry.in_features).contiguous()


@forward.shapes
def _empty(x: Tensor, weight: Tensor, basis: Tensor, coefficients: Tensor | None) -> Tensor:
    size = side_length(basis)
    height, width = x.shape[2] - size + 1, x.shape[3] - size + 1
    return x.new_empty(len(x), height, width, len(basis) * len(weight)).permute(0, 3, 1, 2)


@backward.shapes
def _empty_gradients(g: Tensor, x: Tensor, weight: Tensor, basis: Tensor, needs_x: bool) -> tuple[Tensor, Tensor]:
    batch, maps, height, width = x.shape
    g_x = x.new_empty(batch, height, width, maps).permute(0, 3, 1, 2) if needs_x else x.new_empty(0)
    return g_x, torch.empty_like(weight, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, basis, _ = inputs
    ctx.save_for_backward(x, weight, basis)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    x, weight, basis = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        needed = (*ctx.needs_input_grad[:2], False)
        return *reference_gradients(group_convolution.reference, (x, weight, basis), needed, g), None
    needs_x = ctx.needs_input_grad[0]
    g_x, g_weight = backward(g, x, weight, basis, needs_x)
    return g_x if needs_x else None, g_weight, None, None
