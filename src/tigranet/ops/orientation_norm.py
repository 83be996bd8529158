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
from tigranet.ops.grid_spec import GridSpec

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
    border: int,
    grid: GridSpec,
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
        border: Number of pixels to add on each side, see :func:`pad_images`.
        grid: The grid of the maps.

    Returns:
        The padded images, and the mean and the variance (with 1/n) of each feature, which have no gradient.
    """
    count = y.numel() // len(scale)
    mean, variance = torch.zeros_like(scale), torch.zeros_like(scale)
    columns = to_columns(y, len(scale))
    x = F.batch_norm(columns, mean, variance, scale, bias, training=True, momentum=1.0, eps=eps)
    return (
        pad_maps(from_columns(F.relu(x)), border, grid),
        mean,
        variance * ((count - 1) / count),
    )  # batch_norm stores the unbiased variance


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


def pad_maps(y: Float[Tensor, "batch maps nodes"], border: int, grid: GridSpec) -> Float[Tensor, "batch maps _ _"]:
    """Turn maps into images and add pixels around them.

    Args:
        y: Maps.
        border: Number of pixels to add on each side, see :func:`pad_images`.
        grid: The grid of the maps.

    Returns:
        The padded images.
    """
    return pad_images(y.unflatten(2, (grid.height, grid.width)), border, grid.wraps_rows, grid.wraps_columns)


@orientation_norm.supported_by_kernels
def _check(y: Tensor, scale: Tensor, bias: Tensor, eps: float, border: int, grid: GridSpec) -> str | None:
    if (reason := why_unsupported(y, scale, bias, half_on_cuda=True)) is not None:
        return reason
    return why_not_on_grid(y, grid) or (None if y.numel() else "the maps are empty")


def why_not_on_grid(y: Float[Tensor, "batch maps nodes"], grid: GridSpec) -> str | None:
    """Say why maps do not fit a grid.

    Args:
        y: The maps.
        grid: The grid.

    Returns:
        The reason, or None if they fit.
    """
    if y.shape[2] == grid.height * grid.width:
        return None
    return f"a signal of {y.shape[2]} nodes does not fit a grid of {grid.height} x {grid.width} pixels"


@orientation_norm.fused
def _fused(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    return forward(*args)


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


forward = CustomOp(
    "orientation_norm",
    "Tensor y, Tensor scale, Tensor bias, float eps, int border",
    "(Tensor, Tensor, Tensor)",
    orientation_norm.reference,
)
backward = CustomOp(
    "orientation_norm_backward",
    "Tensor g, Tensor y, Tensor scale, Tensor bias, Tensor mean, Tensor variance, float eps, int border",
    "(Tensor, Tensor, Tensor)",
    _reference_backward,
)


@forward.implementation("cpu")
def _cpu(
    y: Tensor, scale: Tensor, bias: Tensor, eps: float, border: int, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    rows, features = as_pixel_rows(y, grid.height), len(scale)
    mean, variance = _moments(rows, features, y)
    gain, offset = affine(mean, variance, scale, bias, eps)
    return rectify_rows(rows, gain, offset, border, grid, y), mean, variance


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


def empty_padded(y: Tensor, border: int, grid: GridSpec) -> Float[Tensor, "batch maps _ _"]:
    """Return memory for padded images, stored pixel by pixel.

    Args:
        y: The maps (batch, maps, nodes).
        border: Number of pixels that are added on each side.
        grid: The grid of the maps.

    Returns:
        The images.
    """
    return y.new_empty(len(y), grid.height + 2 * border, grid.width + 2 * border, y.shape[1]).permute(0, 3, 1, 2)


def rectify_rows(
    rows: Any, gain: Tensor, offset: Tensor, border: int, grid: GridSpec, y: Float[Tensor, "batch maps nodes"]
) -> Float[Tensor, "batch maps padded_height padded_width"]:
    """Compute ReLU(gain * y + offset) and add a border, by the CPU kernel.

    Args:
        rows: The maps as the array of :func:`as_pixel_rows`.
        gain: One factor per feature.
        offset: One term per feature.
        border: Number of pixels that are added on each side.
        grid: The grid of the maps.
        y: The maps.

    Returns:
        The padded images.
    """
    from tigranet.ops.cpu import orientation_norm as kernels

    out = empty_padded(y, border, grid)
    batch, maps, padded_height, _ = out.shape
    factors, terms = tile(gain, rows.shape[1]), tile(offset, rows.shape[1])
    result = out.permute(0, 2, 3, 1).numpy().reshape(batch * padded_height, -1)
    geometry = grid.height, maps, border, grid.wraps_rows, grid.wraps_columns
    share(
        lambda first, last: kernels.rectify(rows, factors, terms, *geometry, first, last, result),
        len(result),
        out.numel(),
    )
    return out


@backward.implementation("cpu")
def _cpu_backward(
    g: Tensor,
    y: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cpu import orientation_norm as kernels

    rows, features, (batch, maps, _) = as_pixel_rows(y, grid.height), len(scale), y.shape
    padded = g.detach().permute(0, 2, 3, 1).contiguous().numpy().reshape(batch, grid.height + 2 * border, -1)
    gain, offset = affine(mean, variance, scale, bias, eps)
    inputs = padded, rows, *(tile(x, rows.shape[1]) for x in (gain, offset, mean))
    geometry = grid.height, maps, border, grid.wraps_rows, grid.wraps_columns
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
    g_y = empty_padded(y, 0, grid)
    by_row = g_y.permute(0, 2, 3, 1).numpy().reshape(len(rows), -1)
    share(
        lambda first, last: kernels.gradient(*inputs, constant, slope, *geometry, first, last, by_row),
        len(rows),
        3 * rows.size,
    )
    return g_y.flatten(2), (products * inverse_deviation).to(y.dtype), g_bias.to(y.dtype)


@forward.implementation("cuda")
def _cuda(
    y: Tensor, scale: Tensor, bias: Tensor, eps: float, border: int, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda import orientation_norm as kernels

    return kernels.forward(y, scale, bias, eps, border, grid)


@backward.implementation("cuda")
def _cuda_backward(
    g: Tensor,
    y: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    border: int,
    grid: GridSpec,
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda import orientation_norm as kernels

    return kernels.backward(g, y, mean, variance, scale, bias, eps, border, grid, known_moments=False)


@forward.shapes
def _shape(
    y: Tensor, scale: Tensor, bias: Tensor, eps: float, border: int, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    return empty_padded(y, border, grid), torch.empty_like(scale), torch.empty_like(scale)


@backward.shapes
def _shape_backward(g: Tensor, y: Tensor, scale: Tensor, bias: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_gradients(y, scale, bias)


def empty_gradients(y: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return memory for the gradients by maps, stored pixel by pixel, and by the parameters.

    Args:
        y: The maps (batch, maps, nodes).
        scale: One factor per feature.
        bias: One term per feature.

    Returns:
        The gradients by each of them.
    """
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
        needed = (*ctx.needs_input_grad[:3], *(False,) * len(ctx.rest))
        return reference_gradients(_reference_output, (y, scale, bias, *ctx.rest), needed, g)
    gradients = backward(g, y, scale, bias, mean, variance, *ctx.rest)
    return (*gradients, *(None,) * len(ctx.rest))
