"""Launch the kernels of the spectral convolution.

An image that fits in shared memory has one block (``convolution.cu``); larger ones are streamed (``streamed.cu``).
"""

from functools import lru_cache

import torch
from torch import Tensor

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc, streamed
from tigranet.ops.cuda.grid_constants import grid_macros, inverse_root_degree
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.grid_spec import GridSpec

MAX_IMAGE_BYTES = 40 * 1024
"""Size of an image with its border up to which its powers stay in registers. Streaming is faster for larger images."""
MIN_THREADS, NODES_PER_THREAD = 128, 3
WARP = 32


def forward(y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, grid: GridSpec) -> Tensor:
    """Mix the maps of each image and filter the mixture.

    Args:
        y: Maps, (batch, inputs, nodes).
        alpha: Coefficients of the filters, (outputs, degree + 1).
        beta: Weights of the mixture, (inputs,).
        omega: Nodes to keep, a mask (batch, 1, nodes). None for all.
        grid: The grid.

    Returns:
        The filtered maps, (batch, outputs, nodes).

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    device = y.device
    limits = cuda_limits.device_limits(device)
    filters = (*alpha.shape,)
    prepared = _prepare("convolution", y.dtype, y.shape[1], filters, omega is not None, False, grid, device, limits)
    if prepared is None:
        return streamed.convolution(y, alpha, beta, omega, grid)
    kernel, plan = prepared
    y, alpha, beta = y.contiguous(), alpha.contiguous(), beta.contiguous()
    z = y.new_empty(y.shape[0], alpha.shape[0], y.shape[2])
    mask = y if omega is None else omega.contiguous()
    args = [y, alpha, beta, mask, inverse_root_degree(grid, y.dtype, device), z]
    nvrtc.launch(kernel, (len(y), 1, 1), plan.block, args, device)
    return z


def backward(
    g: Tensor, y: Tensor, alpha: Tensor, beta: Tensor, omega: Tensor | None, needs_y: bool, grid: GridSpec
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of the convolution.

    Args:
        g: Gradient by the filtered maps, (batch, outputs, nodes).
        y: Maps, (batch, inputs, nodes).
        alpha: Coefficients of the filters, (outputs, degree + 1).
        beta: Weights of the mixture.
        omega: Nodes to keep, a mask (batch, 1, nodes). None for all.
        needs_y: Whether the gradient by ``y`` is needed.
        grid: The grid.

    Returns:
        The gradients by ``y`` (with batch size 0 if it is not needed), ``alpha`` and ``beta``.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    device, masked = y.device, omega is not None
    limits = cuda_limits.device_limits(device)
    filters = (*alpha.shape,)
    prepared = _prepare("convolution_backward", y.dtype, y.shape[1], filters, masked, needs_y, grid, device, limits)
    if prepared is None:
        return streamed.convolution_backward(g, y, alpha, beta, omega, needs_y, grid)
    kernel, plan = prepared
    g, y, alpha, beta = g.contiguous(), y.contiguous(), alpha.contiguous(), beta.contiguous()
    mask = y if omega is None else omega.contiguous()
    g_y = y.new_empty(y.shape if needs_y else (0, *y.shape[1:]))
    g_alpha, g_beta = y.new_empty(len(y), *alpha.shape), y.new_empty(len(y), *beta.shape)
    args = [g, y, alpha, beta, mask, inverse_root_degree(grid, y.dtype, device), g_y, g_alpha, g_beta]
    nvrtc.launch(kernel, (len(y), 1, 1), plan.block, args, device)
    return g_y, g_alpha.sum(0), g_beta.sum(0)


def launch_plan(
    grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool, inputs: int, outputs: int, coefficients: int
) -> LaunchPlan | str:
    """Plan the launch of the kernel with one block per image.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.
        backward: Whether to plan the backward kernel, which also has sums of each warp in shared memory.
        inputs: Number of maps that are mixed.
        outputs: Number of filters.
        coefficients: Number of coefficients of a filter.

    Returns:
        The plan, or the reason why the images are streamed instead.
    """
    image = (grid.height + 2) * (grid.width + 2)
    subject = f"the {'backward pass' if backward else 'convolution'} of a {grid.height}x{grid.width} image"
    if image * itemsize > MAX_IMAGE_BYTES:
        return f"a {grid.height}x{grid.width} image takes more than {MAX_IMAGE_BYTES // 1024} KiB"
    threads = min(limits.threads_per_block, max(MIN_THREADS, WARP * -(-grid.num_nodes // (NODES_PER_THREAD * WARP))))
    sums = threads // WARP * max(outputs * coefficients, inputs) if backward else 0
    macros = {
        "H": grid.height,
        "W": grid.width,
        "INPUTS": inputs,
        "OUTPUTS": outputs,
        "DEGREE": coefficients - 1,
        "BACKWARD": int(backward),
        "THREADS": threads,
        "ITEMS": -(-grid.num_nodes // threads),
    }
    plan = LaunchPlan((threads, 1, 1), tuple(macros.items()), dynamic_shared_memory=(image + sums) * itemsize)
    return plan.why_too_large(limits, subject) or plan


@lru_cache(maxsize=256)
def _prepare(
    name: str,
    dtype: torch.dtype,
    inputs: int,
    filters: tuple[int, int],
    masked: bool,
    needs_y: bool,
    grid: GridSpec,
    device: torch.device,
    limits: DeviceLimits,
) -> tuple[nvrtc.Kernel, LaunchPlan] | None:
    """Load the kernel and plan its launch; None if the images are streamed."""
    backward = name == "convolution_backward"
    plan = launch_plan(grid, dtype.itemsize, limits, backward, inputs, *filters)
    if isinstance(plan, str):
        return None
    flags = {"MASKED": int(masked), "NEEDS_INPUT_GRADIENT": int(needs_y)}
    macros = (*plan.macros, *grid_macros(grid, dtype).items(), *flags.items())
    source = read_source("convolution")
    return nvrtc.kernel(name, source, macros, plan.dynamic_shared_memory, not backward, device), plan
