"""The operation that normalises features with orientations by the moments of a batch, applies ReLU and adds a border.

PyTorch makes one pass for each of these steps, writes each result to memory, and makes as many passes in the backward
pass. On a CPU, these passes take as long as the convolution that follows them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.padding import pad_images
from tigranet.ops.cpu.arrays import as_pixel_rows
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported

MAX_SHIFTED_MEAN = 10.0
"""The variance is computed about an estimate of the mean, which may be wrong by this many standard deviations."""
SAMPLED_ROWS = 16
"""Number of rows from which the mean is first estimated."""


@operation
def orientation_norm(
    y: Float[Tensor, "batch maps nodes"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    height: int,
    width: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
) -> tuple[
    Float[Tensor, "batch maps padded_height padded_width"], Float[Tensor, " features"], Float[Tensor, " features"]
]:
    r"""Normalise features by their own moments, apply ReLU, and add pixels around each image.

    .. math:: \mathrm{ReLU}\bigl(g_c\, (y - \mathrm{E}\,y_c) / \sqrt{\mathrm{Var}\,y_c + \epsilon} + b_c\bigr)

    Mean and variance are over the batch, the nodes and the orientations of feature c.

    Args:
        y: Maps ordered (orientation, feature), with at least two numbers per feature.
        scale: The factor g of each feature.
        bias: The term b of each feature.
        eps: The number added to the variance.
        height: Number of rows of the images.
        width: Number of columns.
        border: Number of pixels to add on each side, see :func:`pad_images`.
        wrap_rows: Whether added rows come from the opposite side.
        wrap_columns: The same for columns.

    Returns:
        The padded images, and the mean and the variance (with 1/n) of each feature, which have no gradient.
    """
    count = y.numel() // len(scale)
    mean, variance = torch.zeros_like(scale), torch.zeros_like(scale)
    columns = to_columns(y, len(scale))
    x = F.batch_norm(columns, mean, variance, scale, bias, training=True, momentum=1.0, eps=eps)
    padded = pad_images(from_columns(F.relu(x)).unflatten(2, (height, width)), border, wrap_rows, wrap_columns)
    return padded, mean, variance * ((count - 1) / count)  # batch_norm stores the unbiased variance


def to_columns(y: Float[Tensor, "batch maps nodes"], features: int) -> Float[Tensor, "batch features nodes _"]:
    """Put all numbers of a feature into one column. If the maps are stored pixel by pixel, this copies nothing.

    Args:
        y: Maps ordered (orientation, feature).
        features: Number of features.

    Returns:
        A view of the maps where possible.
    """
    return y.transpose(1, 2).unflatten(2, (y.shape[1] // features, features)).permute(0, 3, 1, 2)


def from_columns(columns: Float[Tensor, "batch features nodes orientations"]) -> Float[Tensor, "batch _ nodes"]:
    """Undo :func:`to_columns`.

    Args:
        columns: One column per feature.

    Returns:
        Maps ordered (orientation, feature).
    """
    return columns.permute(0, 2, 3, 1).flatten(2).transpose(1, 2)


@orientation_norm.supported_by_kernels
def _check(y: Tensor, scale: Tensor, bias: Tensor, *_: Any) -> str | None:
    if (reason := why_unsupported(y, scale, bias)) is not None:
        return reason
    return None if y.numel() else "the maps are empty"


@orientation_norm.fused
def _fused(y: Tensor, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
    # There are no kernels for GPUs, where plain PyTorch is what TIGRANET_KERNELS=fused gets too.
    return forward(y, *args) if y.device.type == "cpu" else orientation_norm.reference(y, *args)


def _reference_output(*args: Any) -> Tensor:
    padded, _, _ = orientation_norm.reference(*args)
    return padded


def _reference_backward(
    g: Tensor, y: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    needed = (True, True, True, *(False,) * len(rest))
    g_y, g_scale, g_bias, *_ = gradients_in_new_thread(_reference_output, (y, scale, bias, *rest), needed, g)
    assert g_y is not None
    assert g_scale is not None
    assert g_bias is not None
    return g_y, g_scale, g_bias


_REST = "float eps, SymInt height, SymInt width, int border, bool wrap_rows, bool wrap_columns"
forward = CustomOp(
    "orientation_norm",
    f"Tensor y, Tensor scale, Tensor bias, {_REST}",
    "(Tensor, Tensor, Tensor)",
    orientation_norm.reference,
    grid=False,
)
backward = CustomOp(
    "orientation_norm_backward",
    f"Tensor g, Tensor y, Tensor scale, Tensor bias, Tensor mean, Tensor variance, {_REST}",
    "(Tensor, Tensor, Tensor)",
    _reference_backward,
    grid=False,
)


@forward.implementation("cpu")
def _cpu(
    y: Tensor,
    scale: Tensor,
    bias: Tensor,
    eps: float,
    height: int,
    width: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    rows, features = as_pixel_rows(y, height), len(scale)
    mean, variance = _moments(rows, features, y)
    gain, offset = affine(mean, variance, scale, bias, eps)
    out = empty_padded(y, height, width, border)
    rectify_rows(rows, gain, offset, height, border, wrap_rows, wrap_columns, out)
    return out, mean, variance


def _moments(rows: Any, features: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Compute mean and variance of each feature, by the deviations from an estimate of the mean, in one pass."""
    shift = torch.from_numpy(rows[:: -(-len(rows) // SAMPLED_ROWS)]).reshape(-1, features).mean(0)
    while True:
        first_moment, second_moment = _sums_about(shift, rows, features) / (rows.size // features)
        variance = (second_moment - first_moment.square()).clamp(min=0)
        mean = (shift.double() + first_moment).to(like.dtype)
        # A bad estimate costs digits of the variance. A second pass, about the mean, has them.
        is_bad = first_moment.square() > MAX_SHIFTED_MEAN**2 * variance
        if not (is_bad & (mean != shift)).any():
            return mean, variance.to(like.dtype)
        shift = mean


def _sums_about(shift: Float[Tensor, " features"], rows: Any, features: int) -> Float[Tensor, "2 features"]:
    """Return the sums of y - shift and of its square over all numbers y of each feature, in float64."""
    from tigranet.ops.cpu import orientation_norm as kernels

    blocks, shift_row = -(-len(rows) // kernels.ROWS_PER_BLOCK), tile(shift, rows.shape[1])
    sums = torch.empty(blocks, 2, features, dtype=torch.float64)
    results = sums.numpy()
    share(
        lambda first, last: kernels.moments(rows, shift_row, features, first, last, results),
        blocks,
        2 * rows.size,
    )
    return sums.sum(0)


def affine(mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Write normalisation by known moments as a factor and a term per feature.

    Args:
        mean: The mean of each feature.
        variance: The variance of each feature.
        scale: The factor of each normalised feature.
        bias: The term of each normalised feature.
        eps: The number added to the variance.

    Returns:
        The factor and the term.
    """
    with torch.no_grad():
        gain = scale / (variance + eps).sqrt()
        return gain, bias - mean * gain


def tile(numbers: Float[Tensor, " features"], length: int) -> Any:
    """Repeat one number per feature over the maps and pixels of a row.

    Args:
        numbers: One number per feature.
        length: Number of entries of a row.

    Returns:
        The array.
    """
    return numbers.detach().repeat(length // len(numbers)).numpy()


def empty_padded(y: Tensor, height: int, width: int, border: int) -> Float[Tensor, "batch maps _ _"]:
    """Return memory for padded images, stored pixel by pixel.

    Args:
        y: The maps (batch, maps, nodes).
        height: Number of rows of the images.
        width: Number of columns.
        border: Number of pixels that are added on each side.

    Returns:
        The images.
    """
    return y.new_empty(len(y), height + 2 * border, width + 2 * border, y.shape[1]).permute(0, 3, 1, 2)


def rectify_rows(
    rows: Any,
    gain: Tensor,
    offset: Tensor,
    height: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
    out: Float[Tensor, "batch maps padded_height padded_width"],
) -> None:
    """Compute ReLU(gain * y + offset) and add a border, by the CPU kernel.

    Args:
        rows: The array of :func:`as_pixel_rows`.
        gain: One factor per feature.
        offset: One term per feature.
        height: Number of rows of an image.
        border: Number of pixels that are added on each side.
        wrap_rows: Whether added rows come from the opposite side.
        wrap_columns: The same for columns.
        out: The result of :func:`empty_padded`, which is filled.
    """
    from tigranet.ops.cpu import orientation_norm as kernels

    batch, maps, padded_height, _ = out.shape
    factors, terms = tile(gain, rows.shape[1]), tile(offset, rows.shape[1])
    result = out.permute(0, 2, 3, 1).numpy().reshape(batch * padded_height, -1)
    share(
        lambda first, last: kernels.rectify(
            rows, factors, terms, height, maps, border, wrap_rows, wrap_columns, first, last, result
        ),
        len(result),
        out.numel(),
    )


@backward.implementation("cpu")
def _cpu_backward(
    g: Tensor,
    y: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    height: int,
    width: int,
    border: int,
    wrap_rows: bool,
    wrap_columns: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cpu import orientation_norm as kernels

    rows, features, (batch, maps, _) = as_pixel_rows(y, height), len(scale), y.shape
    padded = g.detach().permute(0, 2, 3, 1).contiguous().numpy().reshape(batch, height + 2 * border, -1)
    gain, offset = affine(mean, variance, scale, bias, eps)
    inputs = padded, rows, *(tile(x, rows.shape[1]) for x in (gain, offset, mean))
    geometry = height, maps, border, wrap_rows, wrap_columns
    blocks, count = -(-len(rows) // kernels.ROWS_PER_BLOCK), rows.size // features
    sums = torch.empty(blocks, 2, features, dtype=torch.float64)
    results = sums.numpy()
    share(
        lambda first, last: kernels.gradient_sums(*inputs, *geometry, features, first, last, results),
        blocks,
        3 * rows.size,
    )
    g_bias, products = sums.sum(0)
    inverse_deviation = (variance.detach().double() + eps).rsqrt()
    constant = tile((gain * (g_bias / count)).to(y.dtype), rows.shape[1])
    slope = tile((gain * (products / count) * inverse_deviation.square()).to(y.dtype), rows.shape[1])
    g_y = empty_padded(y, height, width, 0)
    by_row = g_y.permute(0, 2, 3, 1).numpy().reshape(len(rows), -1)
    share(
        lambda first, last: kernels.gradient(*inputs, constant, slope, *geometry, first, last, by_row),
        len(rows),
        3 * rows.size,
    )
    return g_y.flatten(2), (products * inverse_deviation).to(y.dtype), g_bias.to(y.dtype)


@forward.shapes
def _shape(
    y: Tensor, scale: Tensor, bias: Tensor, eps: float, height: int, width: int, border: int, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return empty_padded(y, height, width, border), torch.empty_like(scale), torch.empty_like(scale)


@backward.shapes
def _shape_backward(g: Tensor, y: Tensor, scale: Tensor, bias: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    g_y = y.new_empty(len(y), y.shape[2], y.shape[1]).transpose(1, 2)
    return g_y, torch.empty_like(scale), torch.empty_like(bias)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    y, scale, bias, *ctx.rest = inputs
    _, mean, variance = output
    ctx.save_for_backward(y, scale, bias, mean, variance)
    ctx.mark_non_differentiable(mean, variance)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor, *_: Any) -> tuple[Any, ...]:
    y, scale, bias, mean, variance = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        return reference_gradients(_reference_output, (y, scale, bias, *ctx.rest), ctx.needs_input_grad, g)
    gradients = backward(g, y, scale, bias, mean, variance, *ctx.rest)
    return (*gradients, *(None,) * len(ctx.rest))
