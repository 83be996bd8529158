"""Launch the kernels of the statistics.

A map that fits stays in registers (``statistics.cu``); larger ones are streamed from memory (``streamed.cu``).
"""

from functools import lru_cache

import torch
from torch import Tensor

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc, streamed
from tigranet.ops.cuda.grid_constants import grid_macros, inverse_root_degree
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.register_layout import register_layout
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.grid_spec import GridSpec

MAX_ORDER = 31
"""The backward kernel stores two bits per order in one number of 64 bits."""
LANES = 32


def forward(z: Tensor, active: Tensor | None, order: int, grid: GridSpec) -> Tensor:
    """Compute mean and variance of the Chebyshev polynomials of each map.

    Args:
        z: Maps, (batch, maps, nodes).
        active: Nodes that count, a mask of the same shape. None for all.
        order: The highest order.
        grid: The grid.

    Returns:
        (batch, maps * (order + 1) * 2): map after map, order after order, mean and variance.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    masked, device = active is not None, z.device
    prepared = _prepare("statistics", z.dtype, masked, order, grid, device, cuda_limits.device_limits(device))
    if prepared is None:
        return streamed.statistics(z if active is None else z * active, order, grid)
    kernel, plan = prepared
    items = z.shape[0] * z.shape[1]
    phi = z.new_empty(z.shape[0], z.shape[1] * 2 * (order + 1))
    z = z.contiguous()
    mask = z if active is None else active.contiguous()
    args = [z, mask, inverse_root_degree(grid, z.dtype, device), phi, items]
    nvrtc.launch(kernel, (-(-items // plan.maps_per_block), 1, 1), plan.block, args, device)
    return phi


def backward(
    g: Tensor, phi: Tensor, z: Tensor, active: Tensor | None, order: int, rounding: int, grid: GridSpec
) -> Tensor:
    """Compute the gradient of the statistics by the maps.

    Args:
        g: Gradient by the statistics, of the shape of ``phi``.
        phi: The statistics.
        z: Maps, (batch, maps, nodes).
        active: Nodes that count, a mask of the same shape. None for all.
        order: The highest order.
        rounding: Magnitudes below this many units of rounding of the map's largest get gradient 0.
        grid: The grid.

    Returns:
        The gradient, (batch, maps, nodes).

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    noise = rounding * torch.finfo(z.dtype).eps
    masked, device = active is not None, z.device
    prepared = _prepare("statistics_backward", z.dtype, masked, order, grid, device, cuda_limits.device_limits(device))
    if prepared is None:
        product = z if active is None else z * active
        g_z = streamed.statistics_backward(g.contiguous(), phi.contiguous(), product, order, noise, grid)
        return g_z if active is None else g_z.mul_(active)
    kernel, plan = prepared
    items = z.shape[0] * z.shape[1]
    z, g, phi = z.contiguous(), g.contiguous(), phi.contiguous()
    mask = z if active is None else active.contiguous()
    g_z = torch.empty_like(z)
    args = [z, mask, inverse_root_degree(grid, z.dtype, device), phi, g, g_z, noise, items]
    nvrtc.launch(kernel, (-(-items // plan.maps_per_block), 1, 1), plan.block, args, device)
    return g_z


def launch_plan(grid: GridSpec, itemsize: int, limits: DeviceLimits, backward: bool, order: int) -> LaunchPlan | str:
    """Plan the launch of the kernel that holds maps in registers.

    Args:
        grid: The grid.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.
        backward: Whether to plan the backward kernel.
        order: The highest order.

    Returns:
        The plan, or the reason why the maps are streamed instead.
    """
    if order > MAX_ORDER:
        return f"order {order} is above {MAX_ORDER}, the highest that the kernel has bits for"
    layout = register_layout(grid.height, grid.width, itemsize, backward, limits)
    if layout is None:
        return f"a {grid.height}x{grid.width} map does not fit in the registers of a block"
    sizes = {"H": grid.height, "W": grid.width, "ORDER": order, "BACKWARD": int(backward)}
    sizes |= {name.upper(): value for name, value in layout._asdict().items() if name != "registers"}
    halo = layout.warps * 4 * layout.columns * LANES if layout.warps > 1 else 1
    parts = 0 if backward else (order + 1) * layout.warps * 2 if layout.warps > 1 else 1
    plan = LaunchPlan(
        (LANES, layout.warps * layout.maps, 1),
        tuple(sizes.items()),
        static_shared_memory=(halo + LANES + parts) * itemsize,
        registers=layout.registers,
        maps_per_block=layout.maps,
    )
    return plan.why_too_large(limits, f"a {grid.height}x{grid.width} map") or plan


@lru_cache(maxsize=256)
def _prepare(
    name: str,
    dtype: torch.dtype,
    masked: bool,
    order: int,
    grid: GridSpec,
    device: torch.device,
    limits: DeviceLimits,
) -> tuple[nvrtc.Kernel, LaunchPlan] | None:
    """Load the kernel and plan its launch; None if the maps are streamed."""
    backward = name == "statistics_backward"
    plan = launch_plan(grid, dtype.itemsize, limits, backward, order)
    if isinstance(plan, str):
        return None
    macros = (*plan.macros, *grid_macros(grid, dtype).items(), ("MASKED", int(masked)))
    return nvrtc.kernel(name, read_source("statistics"), macros, 0, backward, device), plan
