"""Launch the kernel of dynamic pooling (``pooling.cu``), which takes maps of any size."""

from functools import lru_cache

import torch
from torch import Tensor

from tigranet.ops.cuda import limits as cuda_limits
from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import real_type
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.sources import read_source

WARP = 32
NODES_PER_THREAD = 24
"""Number of nodes per thread that decides how many warps a map gets."""
MAX_WARPS = 32
MAX_KEY_REGISTERS, OTHER_REGISTERS = 48, 16
"""Registers of a thread for the keys of its nodes, at most, and for everything else."""


def forward(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    """Find the nodes with the largest values of each map.

    Args:
        z: Maps, (batch, maps, nodes).
        omega: Nodes among which they are, a mask (batch, 1, nodes). None for all.
        num_active: Number of active nodes per map.
        strict: Whether ties are broken by position instead of included.
        tolerance: Distance from the last active value, relative to the largest magnitude of the map, within which
            nodes are tied.

    Returns:
        The active nodes, a mask of the shape of ``z``.

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    nodes, items, device = z.shape[2], z.shape[0] * z.shape[1], z.device
    z = z.contiguous()
    mask = z if omega is None else omega.contiguous()
    active = torch.empty_like(z, dtype=torch.bool)
    kernel, plan = _prepare(z.dtype, nodes, omega is not None, strict, device, cuda_limits.device_limits(device))
    args = [z, mask, active, z.shape[1], min(num_active, nodes), float(tolerance), items]
    nvrtc.launch(kernel, (-(-items // plan.maps_per_block), 1, 1), plan.block, args, device)
    return active


def launch_plan(nodes: int, itemsize: int, limits: DeviceLimits) -> LaunchPlan:
    """Plan the launch of the kernel. There is a plan for every size.

    Args:
        nodes: Number of nodes of a map.
        itemsize: Bytes per number, 4 or 8.
        limits: Limits of the device.

    Returns:
        The plan.
    """
    max_warps = min(MAX_WARPS, limits.threads_per_block // WARP)
    warps = min(max_warps, -(-nodes // (WARP * NODES_PER_THREAD)))
    maps = min(4, max_warps) if warps == 1 else 1
    items = -(-nodes // (WARP * warps))
    threads = WARP * warps * maps
    key_registers = min(MAX_KEY_REGISTERS, limits.registers_per_block // threads - OTHER_REGISTERS)
    macros = {
        "H": 1,
        "W": nodes,
        "WARPS": warps,
        "MAPS": maps,
        "ITEMS": items,
        "KEYS_IN_REGISTERS": int(items * (itemsize // 4) <= key_registers),
    }
    static_shared_memory = WARP * 4 + WARP * itemsize  # one count and one key per warp
    return LaunchPlan(
        (WARP, warps * maps, 1),
        tuple(macros.items()),
        static_shared_memory=static_shared_memory,
        maps_per_block=maps,
    )


@lru_cache(maxsize=256)
def _prepare(
    dtype: torch.dtype, nodes: int, masked: bool, strict: bool, device: torch.device, limits: DeviceLimits
) -> tuple[nvrtc.Kernel, LaunchPlan]:
    """Load the kernel and plan its launch."""
    plan = launch_plan(nodes, dtype.itemsize, limits)
    flags = {
        "REAL": real_type(dtype),
        "BITS": "unsigned" if dtype == torch.float32 else "unsigned long long",
        "MASKED": int(masked),
        "STRICT": int(strict),
    }
    macros = (*plan.macros, *flags.items())
    return nvrtc.kernel("pooling", read_source("pooling"), macros, 0, True, device), plan
