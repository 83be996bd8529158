"""Launch the kernels of the products of image gradients (``oriented_products.cu``): one block per pair of maps."""

from functools import lru_cache

import torch
from torch import Tensor

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import grid_macros
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.cuda.strip_layout import strip_layout
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec
from tigranet.torch_compat import constant_while_tracing

FIELDS_FORWARD, FIELDS_BACKWARD, FIELDS_COMPACT = 6, 8, 4
"""Maps in shared memory. The compact kernels are slower and run where the others do not fit."""


def forward(mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    """Multiply the image gradients of pairs of maps.

    Args:
        mixtures: Maps, (batch, 2 * pairs, nodes): the first of every pair, then the second.
        kinds: 4 for the real and imaginary parts of the products of first and second order, 2 for the real parts.
        grid: The grid.

    Returns:
        The products, (batch, kinds * pairs, nodes), kind after kind.

    Raises:
        KernelUnavailableError: If the map is too large, or the kernel cannot be compiled or launched.
    """
    out = mixtures.new_empty(mixtures.shape[0], kinds * mixtures.shape[1] // 2, mixtures.shape[2])
    return _launch("oriented_products", [mixtures], out, kinds, grid)


def backward(g: Tensor, mixtures: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    """Compute the gradient of the products by the maps.

    Args:
        g: Gradient by the products, (batch, kinds * pairs, nodes).
        mixtures: Maps, (batch, 2 * pairs, nodes).
        kinds: 4 or 2.
        grid: The grid.

    Returns:
        The gradient, (batch, 2 * pairs, nodes).

    Raises:
        KernelUnavailableError: If the map is too large, or the kernel cannot be compiled or launched.
    """
    g_mixtures = torch.empty_like(mixtures, memory_format=torch.contiguous_format)
    return _launch("oriented_products_backward", [g, mixtures], g_mixtures, kinds, grid)


@constant_while_tracing
def why_unsupported(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool) -> str | None:
    """Say why there is no kernel for a size.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.
        backward: Whether to ask for the backward kernel, which needs more shared memory.

    Returns:
        The reason, or None if there is a kernel.
    """
    return _reason(grid, itemsize, limits, backward)


@lru_cache(maxsize=256)
def _reason(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool) -> str | None:
    """Plan a launch and return the reason against it, if there is one. Every call of the operation asks for it."""
    plan = launch_plan(grid, itemsize, limits, backward)
    return plan if isinstance(plan, str) else None


def launch_plan(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool) -> LaunchPlan | str:
    """Plan the launch of a kernel.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.
        backward: Whether to plan the backward kernel.

    Returns:
        The plan, or the reason why there is none.
    """
    layout = strip_layout(grid, limits.threads_per_block)
    if isinstance(layout, str):
        return layout
    block = layout.block
    sizes = {"H": grid.height, "W": grid.width, "ROWS": layout.rows, "THREADS": block[0] * block[1]}
    subject, reason = f"a pair of {grid.height}x{grid.width} maps", ""
    for fields in (FIELDS_BACKWARD if backward else FIELDS_FORWARD, FIELDS_COMPACT):
        macros = {**sizes, "BACKWARD": int(backward), "COMPACT": int(fields == FIELDS_COMPACT)}
        plan = LaunchPlan(block, tuple(macros.items()), dynamic_shared_memory=fields * grid.num_nodes * itemsize)
        reason = plan.why_too_large(limits, subject) or ""
        if not reason:
            return plan
    return reason


def _launch(name: str, tensors: list[Tensor], result: Tensor, kinds: int, grid: GridSpec) -> Tensor:
    pairs, device = tensors[-1].shape[1] // 2, result.device
    kernel, plan = _prepare(name, result.dtype, kinds, grid, device, cuda_limits.device_limits(device))
    args = [*(tensor.contiguous() for tensor in tensors), result, pairs]
    nvrtc.launch(kernel, (len(result) * pairs, 1, 1), plan.block, args, device)
    return result


@lru_cache(maxsize=256)
def _prepare(
    name: str, dtype: torch.dtype, kinds: int, grid: GridSpec, device: torch.device, limits: DeviceLimits
) -> tuple[nvrtc.Kernel, LaunchPlan]:
    """Load the kernel and plan its launch."""
    plan = launch_plan(grid, dtype.itemsize, limits, name == "oriented_products_backward")
    if isinstance(plan, str):
        raise KernelUnavailableError(plan)
    macros = (*plan.macros, *grid_macros(grid, dtype).items(), ("KINDS", kinds))
    source = read_source("oriented_products")
    return nvrtc.kernel(name, source, macros, plan.dynamic_shared_memory, False, device), plan
