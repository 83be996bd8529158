"""The dynamic pooling's operation: the nodes with the largest values of each map."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tigranet.ops.cpu.arrays import as_array, as_mask
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp
from tigranet.ops.dispatch import operation, why_unsupported

PASSES = 20
"""Approximate number of times that a map is read: most bisections end before all bits are determined."""


@operation
def pooling(
    z: Float[Tensor, "batch maps nodes"],
    omega: Bool[Tensor, "batch 1 nodes"] | None,
    num_active: int,
    strict: bool,
    tolerance: float,
) -> Bool[Tensor, "batch maps nodes"]:
    """Mark the nodes in omega with the largest values of each map.

    Args:
        z: Maps. No gradient passes through this operation.
        omega: Nodes of interest. None for all nodes.
        num_active: The number J of nodes per map.
        strict: Whether exactly J nodes are marked, an arbitrary choice among equal values. Otherwise every node that
            is tied with the J-th is marked too.
        tolerance: Values are tied if they differ by at most this fraction of the map's largest magnitude in omega.

    Returns:
        The mask of active nodes.
    """
    z = z.detach()
    omega = torch.ones_like(z[:, :1], dtype=torch.bool) if omega is None else omega
    top = z.masked_fill(~omega, -torch.inf).topk(min(num_active, z.shape[-1]), sorted=False)
    if strict:
        active = torch.zeros_like(z, dtype=torch.bool).scatter(-1, top.indices, True)
    else:
        jth = top.values.amin(-1, keepdim=True)
        magnitude = (z * omega).abs().amax(-1, keepdim=True)
        active = z >= jth - tolerance * magnitude
    return active & omega


@pooling.supported_by_kernels
def _check(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> str | None:
    if (reason := why_unsupported(z, omega)) is not None:
        return reason
    if omega is not None and (omega.shape != (z.shape[0], 1, z.shape[2]) or omega.dtype != torch.bool):
        return f"nodes of interest {omega.dtype} {tuple(omega.shape)} do not fit maps {tuple(z.shape)}"
    return None if z.shape[2] else "the maps have no nodes"


@pooling.fused
def _fused(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    return forward(z.detach(), omega, num_active, strict, tolerance)


forward = CustomOp(
    "pooling",
    "Tensor z, Tensor? omega, int num_active, bool strict, float tolerance",
    "Tensor",
    pooling.reference,
    grid=False,
)


@forward.implementation("cpu")
def _cpu(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    from tigranet.ops.cpu import pooling as kernels

    batch, maps, nodes = z.shape
    values = as_array(z).reshape(batch * maps, nodes)
    bits = values.view(f"int{8 * values.itemsize}")
    mask, masked = as_mask(omega, batch, nodes)
    active = torch.empty(z.shape, dtype=torch.bool)
    out, margin = active.view(torch.uint8).numpy().reshape(batch * maps, nodes), values.dtype.type(tolerance)
    share(
        lambda first, last: kernels.pooling(
            values, mask, masked, maps, num_active, strict, margin, bits, first, last, out
        ),
        batch * maps,
        z.numel() * PASSES,
    )
    return active


@forward.implementation("cuda")
def _cuda(z: Tensor, omega: Tensor | None, num_active: int, strict: bool, tolerance: float) -> Tensor:
    from tigranet.ops.cuda import pooling as kernels

    return kernels.forward(z, omega, num_active, strict, tolerance)


@forward.shapes
def _shape(z: Tensor, *_: Any) -> Tensor:
    return z.new_empty(z.shape, dtype=torch.bool)
