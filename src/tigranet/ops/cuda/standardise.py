"""Launch the kernels that standardise maps over the batch and their nodes, with what follows (``standardise.cu``)."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import real_type
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.sources import read_source

THREADS = 256
WARP = 32
PACKS_PER_THREAD = 4
"""Groups of neighbouring numbers that a thread loads before it uses the first."""


def forward(
    z: Tensor, bias: Tensor | None, after: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Standardise maps by their own mean and variance.

    Args:
        z: Maps, (batch, maps, nodes).
        bias: Numbers (maps, 1) that are added before a ReLU, or None for neither.
        after: Maps (batch, n, nodes) after which the result is placed, or None.
        eps: Number that is added to the variance.
        large: Number of standard deviations above which values grow as a square root, or 0 for no such limit.

    Returns:
        The standardised maps, (batch, n + maps, nodes), and mean and variance of each map, with divisor n.

    Raises:
        KernelUnavailableError: If a kernel cannot be compiled or launched.
    """
    z, y = z.contiguous(), z[:, :0] if after is None else after.contiguous()
    maps, pack = z.shape[1], pack_size(z, y)
    b = z if bias is None else bias.contiguous()
    has_bias = bias is not None
    out = z.new_empty(len(z), y.shape[1] + maps, z.shape[2])
    mean, variance, parts = z.new_empty(maps), z.new_empty(maps), _new_parts(pack, z)
    _run("moments", z, pack, has_bias, large, len(parts) * maps, [z, parts])
    _run("merge", z, pack, has_bias, large, maps, [parts, mean, variance], threads=WARP)
    args = [z, mean, variance, b, y, out, eps, y.shape[1]]
    _run("transform", z, pack, has_bias, large, len(parts) * out.shape[1], args)
    return out, mean, variance


def evaluate(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> Tensor:
    """Standardise maps by a mean and a variance that are known.

    Args:
        z: Maps, (batch, maps, nodes).
        mean: Mean of each map, (maps,).
        variance: Variance of each map, (maps,).
        eps: Number that is added to the variance.
        bias: Numbers (maps, 1) that are added before a ReLU, or None for neither.
        large: Number of standard deviations above which values grow as a square root, or 0 for no such limit.
        after: Maps (batch, n, nodes) after which the result is placed, or None.

    Returns:
        The standardised maps, (batch, n + maps, nodes).

    Raises:
        KernelUnavailableError: If the kernel cannot be compiled or launched.
    """
    z, y = z.contiguous(), z[:, :0] if after is None else after.contiguous()
    pack = pack_size(z, y)
    b = z if bias is None else bias.contiguous()
    out = z.new_empty(len(z), y.shape[1] + z.shape[1], z.shape[2])
    args = [z, mean.contiguous(), variance.contiguous(), b, y, out, eps, y.shape[1]]
    _run("transform", z, pack, bias is not None, large, _num_parts(pack, z) * out.shape[1], args)
    return out


def backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    """Compute the gradients of :func:`forward`.

    Args:
        g: Gradient by the standardised maps, (batch, maps, nodes). It may be a slice of a tensor with more maps.
        z: Maps, (batch, maps, nodes).
        mean: Mean of each map.
        variance: Variance of each map.
        bias: As for :func:`forward`.
        eps: As for :func:`forward`.
        large: As for :func:`forward`.

    Returns:
        The gradients by ``z``, and by the bias, (maps, 1), which means nothing if there is no bias.

    Raises:
        KernelUnavailableError: If a kernel cannot be compiled or launched.
    """
    nodes = z.shape[2]
    z, g = z.contiguous(), g if g.stride()[1:] == (nodes, 1) and g.stride(0) % nodes == 0 else g.contiguous()
    maps, pack, g_maps = z.shape[1], pack_size(g, z), g.stride(0) // nodes
    b = z if bias is None else bias.contiguous()
    has_bias = bias is not None
    g_z, g_bias, sums, parts = torch.empty_like(z), z.new_empty(maps, 1), z.new_empty(maps, 2), _new_parts(pack, z)
    blocks = len(parts) * maps
    _run("backward_sums", z, pack, has_bias, large, blocks, [g, z, mean, variance, b, parts, eps, g_maps])
    _run("backward_total", z, pack, has_bias, large, maps, [parts, sums, g_bias], threads=WARP)
    _run("backward_apply", z, pack, has_bias, large, blocks, [g, z, mean, variance, b, sums, g_z, eps, g_maps])
    return g_z, g_bias


def launch_plan(nodes: int) -> LaunchPlan:
    """Plan the launch of the kernels, which fit on every GPU.

    Args:
        nodes: Number of nodes of a map.

    Returns:
        The plan.
    """
    macros = {"H": 1, "W": nodes, "NODES": nodes, "PACKS_PER_THREAD": PACKS_PER_THREAD, "THREADS": THREADS}
    return LaunchPlan((THREADS, 1, 1), tuple(macros.items()), static_shared_memory=THREADS // WARP * 16)


def pack_size(*tensors: Tensor) -> int:
    """Return how many neighbouring nodes are read together.

    Args:
        *tensors: The maps that are read, (batch, maps, nodes).

    Returns:
        4 if every map starts at a multiple of 4 nodes, else 1.
    """
    return 4 if all(tensor.shape[2] % 4 == 0 and tensor.data_ptr() % 16 == 0 for tensor in tensors) else 1


def _num_parts(pack: int, z: Tensor) -> int:
    """Return into how many parts, one per block, a map over the batch is divided."""
    return -(-z.shape[0] * z.shape[2] // (pack * THREADS * PACKS_PER_THREAD))


def _new_parts(pack: int, z: Tensor) -> Tensor:
    """Allocate two sums for each part of each map."""
    return torch.empty(_num_parts(pack, z), z.shape[1], 2, dtype=torch.float64, device=z.device)


def _run(
    name: str,
    z: Tensor,
    pack: int,
    has_bias: bool,
    large: int,
    blocks: int,
    args: list[Any],
    threads: int = THREADS,
) -> None:
    """Launch a kernel, whose last arguments are the batch size and the number of maps."""
    kernel = _prepare(name, z.shape[2], pack, has_bias, large, z.dtype, z.device)
    nvrtc.launch(kernel, (blocks, 1, 1), (threads, 1, 1), [*args, *z.shape[:2]], z.device)


@lru_cache(maxsize=256)
def _prepare(
    name: str, nodes: int, pack: int, has_bias: bool, large: int, dtype: torch.dtype, device: torch.device
) -> nvrtc.Kernel:
    """Load a kernel."""
    flags = {"REAL": real_type(dtype), "PACK_SIZE": pack, "HAS_BIAS": int(has_bias), "ROOT_ABOVE": large}
    macros = (*launch_plan(nodes).macros, *flags.items())
    return nvrtc.kernel(name, read_source("standardise"), macros, 0, False, device)
