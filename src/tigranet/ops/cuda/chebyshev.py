"""Launch the kernels of Chebyshev polynomials and their sums (``chebyshev.cu``): one block per map."""

from functools import lru_cache

import torch
from torch import Tensor

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import grid_macros, inverse_root_degree
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.cuda.strip_layout import strip_layout
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.ops.grid_spec import GridSpec
from tigranet.torch_compat import constant_while_tracing

MAX_MAP_BYTES = 40 * 1024
"""Size of a map with its border up to which its terms stay in registers."""


def basis(y: Tensor, degree: int, grid: GridSpec) -> Tensor:
    """Compute the Chebyshev polynomials of order 0 to ``degree`` of each map.

    Args:
        y: Maps, (batch, maps, nodes).
        degree: The highest order.
        grid: The grid.

    Returns:
        (batch, (degree + 1) * maps, nodes): order after order, all maps.

    Raises:
        KernelUnavailableError: If the map is too large, or the kernel cannot be compiled or launched.
    """
    t = y.new_empty(y.shape[0], (degree + 1) * y.shape[1], y.shape[2])
    return _launch(y, t, degree, False, grid)


def summed(u: Tensor, degree: int, grid: GridSpec) -> Tensor:
    """Add up the Chebyshev polynomials of maps: the adjoint of :func:`basis`.

    Args:
        u: Maps, (batch, (degree + 1) * maps, nodes): order after order, all maps.
        degree: The highest order.
        grid: The grid.

    Returns:
        The sums over the orders m of the polynomials of order m of the maps of order m, (batch, maps, nodes).

    Raises:
        KernelUnavailableError: If the map is too large, or the kernel cannot be compiled or launched.
    """
    z = u.new_empty(u.shape[0], u.shape[1] // (degree + 1), u.shape[2])
    return _launch(u, z, degree, True, grid)


@constant_while_tracing
def why_unsupported(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool) -> str | None:
    """Say why there is no kernel for a size.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.
        backward: Whether gradients are needed. Both operations have the same limits, and each is the gradient of the
            other.

    Returns:
        The reason, or None if there is a kernel.
    """
    return _reason(grid, itemsize, limits, backward)


@lru_cache(maxsize=256)
def _reason(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool) -> str | None:
    """Plan a launch and return the reason against it, if there is one. Every call of the operation asks for it."""
    plan = launch_plan(grid, itemsize, limits)
    return plan if isinstance(plan, str) else None


def launch_plan(grid: GridSpec, itemsize: int, limits: DeviceLimits) -> LaunchPlan | str:
    """Plan the launch of the kernel.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.

    Returns:
        The plan, or the reason why there is none.
    """
    subject = f"a {grid.height}x{grid.width} map"
    layout = strip_layout(grid, limits.threads_per_block)
    if isinstance(layout, str):
        return layout
    block = layout.block
    macros = {"H": grid.height, "W": grid.width, "ROWS": layout.rows, "THREADS": block[0] * block[1]}
    shared_memory = 2 * (grid.height + 1) * (grid.width + 1) * itemsize
    plan = LaunchPlan(block, tuple(macros.items()), dynamic_shared_memory=shared_memory)
    if (reason := plan.why_too_large(limits, subject)) is not None:
        return reason
    if (grid.height + 2) * (grid.width + 2) * itemsize > MAX_MAP_BYTES:
        return f"{subject} takes more than {MAX_MAP_BYTES // 1024} KiB with its border, too many for the registers"
    return plan


def _launch(x: Tensor, result: Tensor, degree: int, summing: bool, grid: GridSpec) -> Tensor:
    maps, device = min(x.shape[1], result.shape[1]), x.device
    kernel, plan = _prepare(x.dtype, degree, summing, grid, device, cuda_limits.device_limits(device))
    args = [x.contiguous(), inverse_root_degree(grid, x.dtype, device), result, maps]
    nvrtc.launch(kernel, (len(x) * maps, 1, 1), plan.block, args, device)
    return result


@lru_cache(maxsize=256)
def _prepare(
    dtype: torch.dtype, degree: int, summing: bool, grid: GridSpec, device: torch.device, limits: DeviceLimits
) -> tuple[nvrtc.Kernel, LaunchPlan]:
    """Load the kernel and plan its launch."""
    plan = launch_plan(grid, dtype.itemsize, limits)
    if isinstance(plan, str):
        raise KernelUnavailableError(plan)
    macros = (*plan.macros, *grid_macros(grid, dtype).items(), ("DEGREE", degree), ("SUM", int(summing)))
    source = read_source("chebyshev")
    return nvrtc.kernel("chebyshev", source, macros, plan.dynamic_shared_memory, False, device), plan
