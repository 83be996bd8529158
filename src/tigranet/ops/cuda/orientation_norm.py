"""Launch the kernels that normalise features with orientations and add a border (``orientation_norm.cu``)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.pixel_packs import THREADS, PixelBlocks, as_pixels, check_pixels, pack_size, pixel_kernel
from tigranet.ops.grid_spec import GridSpec

MAX_PARTS = 1024
"""Number of parts, at most, into which the pixels are divided. Their sums are added up in float64."""
MIN_PIXELS_PER_SUM = 4
MAX_PIXELS_PER_SUM = 2**20
"""Pixels that a thread adds up, at least and at most."""
BLOCKS, MAX_PIXELS_PER_THREAD = 2048, 16
"""Blocks that compute images, unless each of their threads has the maximal number of pixels."""


def forward(
    y: Float[Tensor, "batch maps nodes"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    border: int,
    grid: GridSpec,
) -> tuple[
    Float[Tensor, "batch maps padded_height padded_width"], Float[Tensor, " features"], Float[Tensor, " features"]
]:
    """Normalise features by their own moments, apply ReLU, and add pixels around each image.

    Args:
        y: Maps ordered (orientation, feature), not empty.
        scale: Factor of each feature, in the type of the arithmetic.
        bias: Term of each feature.
        eps: Number that is added to the variance.
        border: Number of pixels to add on each side.
        grid: The grid of the maps.

    Returns:
        The padded images, and mean and variance of each feature.

    Raises:
        KernelUnavailableError: If a kernel cannot be compiled or launched.
    """
    values, features = as_pixels(y), len(scale)
    mean, variance = torch.empty_like(scale), torch.empty_like(scale)
    pack = pack_size(y.shape[1], values)
    blocks = _blocks_of_sums(values, pack)
    parts = _new_parts(blocks, 3, scale)
    sizes = [blocks.pixels_per_block, y.shape[1], features]
    _launch("moments", values, pack, blocks, [values, parts, values.shape[0] * values.shape[1], *sizes])
    _launch_by_feature("merge", values, pack, [parts, mean, variance], parts)
    return evaluate(y, mean, variance, scale, bias, eps, border, grid), mean, variance


def evaluate(
    y: Float[Tensor, "batch maps nodes"],
    mean: Float[Tensor, " features"],
    variance: Float[Tensor, " features"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    border: int,
    grid: GridSpec,
) -> Float[Tensor, "batch maps padded_height padded_width"]:
    """Normalise features by known moments, apply ReLU, and add pixels around each image.

    Args:
        y: Maps ordered (orientation, feature).
        mean: Mean of each feature.
        variance: Variance of each feature.
        scale: As for :func:`forward`.
        bias: As for :func:`forward`.
        eps: As for :func:`forward`.
        border: As for :func:`forward`.
        grid: As for :func:`forward`.

    Returns:
        The padded images.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    values, (batch, maps, _) = as_pixels(y), y.shape
    out = values.new_empty(batch, grid.height + 2 * border, grid.width + 2 * border, maps)
    pack = pack_size(maps, values, out)
    pixels = out[..., 0].numel()
    blocks = _blocks_of_images(pixels, maps // pack)
    parameters = [x.detach().contiguous() for x in (mean, variance, scale, bias)]
    sizes = [pixels, blocks.pixels_per_block, maps, len(scale), *_geometry(border, grid)]
    _launch("rectify", values, pack, blocks, [values, *parameters, out, eps, *sizes])
    return out.permute(0, 3, 1, 2)


def backward(
    g: Float[Tensor, "batch maps padded_height padded_width"],
    y: Float[Tensor, "batch maps nodes"],
    mean: Float[Tensor, " features"],
    variance: Float[Tensor, " features"],
    scale: Float[Tensor, " features"],
    bias: Float[Tensor, " features"],
    eps: float,
    border: int,
    grid: GridSpec,
    known_moments: bool,
) -> tuple[Float[Tensor, "batch maps nodes"], Float[Tensor, " features"], Float[Tensor, " features"]]:
    """Compute the gradients of :func:`forward` or :func:`evaluate`.

    Args:
        g: Gradient by the padded images.
        y: Maps ordered (orientation, feature), not empty.
        mean: Mean of each feature.
        variance: Variance of each feature.
        scale: As for :func:`forward`.
        bias: As for :func:`forward`.
        eps: As for :func:`forward`.
        border: As for :func:`forward`.
        grid: As for :func:`forward`.
        known_moments: Whether mean and variance are constants (:func:`evaluate`) rather than moments of ``y``.

    Returns:
        The gradients by ``y``, ``scale`` and ``bias``.

    Raises:
        KernelUnavailableError: If a kernel cannot be compiled or launched.
    """
    values, (batch, maps, nodes) = as_pixels(y), y.shape
    upstream = g.detach().to(y.dtype).permute(0, 2, 3, 1).contiguous()
    g_y = torch.empty_like(values)
    pack, pixels, features = pack_size(maps, values, upstream, g_y), batch * nodes, len(scale)
    parameters = [x.detach().contiguous() for x in (mean, variance, scale, bias)]
    g_scale, g_bias = torch.empty_like(parameters[2]), torch.empty_like(parameters[3])
    coefficients = scale.new_empty(2, features)
    check_pixels(upstream[..., 0].numel())
    blocks, geometry = _blocks_of_sums(values, pack), _geometry(border, grid)
    parts = _new_parts(blocks, 2, scale)
    sizes = [pixels, blocks.pixels_per_block, maps, features, *geometry]
    _launch("gradient_sums", values, pack, blocks, [upstream, values, *parameters, parts, eps, *sizes])
    totals = [parts, *parameters[1:3], g_scale, g_bias, coefficients, eps, float(values.numel() // features)]
    _launch_by_feature("gradient_totals", values, pack, totals, parts)
    blocks = _blocks_of_images(pixels, maps // pack)
    sizes = [int(known_moments), pixels, blocks.pixels_per_block, maps, features, *geometry]
    _launch("gradient", values, pack, blocks, [upstream, values, *parameters, coefficients, g_y, eps, *sizes])
    return g_y.transpose(1, 2), g_scale, g_bias


def _geometry(border: int, grid: GridSpec) -> list[int]:
    """Return the last arguments of the kernels that know of the border."""
    return [grid.height, grid.width, border, int(grid.wraps_rows), int(grid.wraps_columns)]


def _blocks_of_sums(values: Float[Tensor, "batch nodes maps"], pack: int) -> PixelBlocks:
    batch, nodes, maps = values.shape
    return PixelBlocks.plan(batch * nodes, maps // pack, MIN_PIXELS_PER_SUM, MAX_PIXELS_PER_SUM, MAX_PARTS)


def _blocks_of_images(pixels: int, packs: int) -> PixelBlocks:
    return PixelBlocks.plan(pixels, packs, 1, MAX_PIXELS_PER_THREAD, BLOCKS)


def _new_parts(blocks: PixelBlocks, numbers: int, scale: Tensor) -> Float[Tensor, "parts numbers features"]:
    """Allocate sums for each part of the pixels and each feature."""
    return scale.new_empty(blocks.num_blocks * blocks.chunks, numbers, len(scale), dtype=torch.float64)


def _launch(name: str, values: Tensor, pack: int, blocks: PixelBlocks, args: list[Any]) -> None:
    kernel = pixel_kernel("orientation_norm", name, values.dtype, pack, values.device)
    nvrtc.launch(kernel, blocks.grid, blocks.block, args, values.device)


def _launch_by_feature(name: str, values: Tensor, pack: int, args: list[Any], parts: Tensor) -> None:
    """Launch a kernel that adds up the parts, with one block per feature."""
    num_parts, _, features = parts.shape
    kernel = pixel_kernel("orientation_norm", name, values.dtype, pack, values.device)
    nvrtc.launch(kernel, (features, 1, 1), (THREADS, 1, 1), [*args, num_parts, features], values.device)
