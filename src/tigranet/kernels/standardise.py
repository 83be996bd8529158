"""Standardising maps over a batch and its nodes, on a GPU: PyTorch's batch normalisation has one block a map there, and
leaves most of the device idle. On a CPU it is PyTorch's."""

from typing import Any

import torch
from torch import Tensor

from tigranet.kernels.choice import asked, misfit
from tigranet.kernels.operator import operator


def standardised(
    z: Tensor, eps: float, bias: Tensor | None = None, large: int = 0, behind: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """``z`` (batch, maps, nodes) less the mean of each map over its standard deviation; the mean; and the variance,
    with 1/n. With a ``bias`` (maps, 1), ReLU of the first and it; with ``large``, the root of the first beyond so many
    deviations; with maps to be ``behind``, these and it, joined. None where there is no fused version, or a plain one
    was asked for."""
    if not z.is_cuda or not z.numel() or asked() == "plain" or misfit(z, bias, behind) is not None:
        return None
    out, mean, variance = standardise(z, bias, behind, eps, large)
    return out, mean, variance


def plainly(z: Tensor, bias: Tensor | None, eps: float, large: int) -> Tensor:
    """The same in PyTorch's operations, alone."""
    variance, mean = torch.var_mean(z, (0, 2), correction=0, keepdim=True)
    x = (z - mean) * (variance + eps).rsqrt()
    return torch.relu(x + bias) if bias is not None else x * (1 + x.abs() / large).rsqrt() if large else x


@operator("standardise", "cuda")
def standardise(
    z: Tensor, bias: Tensor | None, behind: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.kernels.cuda_standardise import forward

    return forward(z, bias, behind, eps, large)


@operator("standardise_backward", "cuda")
def standardise_backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    """The gradients by z, and by the bias. The maps of ``g`` may be a part of more."""
    from tigranet.kernels.cuda_standardise import backward

    return backward(g, z, mean, variance, bias, eps, large)


@standardise.register_fake
def _(z: Tensor, bias: Tensor | None, behind: Tensor | None, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    before = 0 if behind is None else behind.shape[1]
    joined = z.new_empty(z.shape[0], before + z.shape[1], z.shape[2])
    return joined, z.new_empty(z.shape[1]), z.new_empty(z.shape[1])


@standardise_backward.register_fake
def _(g: Tensor, z: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(z.shape[1], 1)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    z, bias, behind, *ctx.rest = inputs
    ctx.before = None if behind is None else behind.shape[1]
    _, mean, variance = output
    ctx.save_for_backward(z, bias, mean, variance)
    ctx.mark_non_differentiable(mean, variance)


def _backward(ctx: Any, g: Tensor, *_: Any) -> tuple[Any, ...]:
    z, bias, mean, variance = ctx.saved_tensors
    g_behind = None if ctx.before is None else g[:, : ctx.before]
    g = g[:, ctx.before or 0 :]
    if torch.is_grad_enabled():  # a second derivative may be asked for: by PyTorch's own operations
        inputs = [z] if bias is None else [z, bias]
        found = torch.autograd.grad(plainly(z, bias, *ctx.rest), inputs, g, create_graph=True)
        return (*found, *(None for _ in range(2 - len(found))), g_behind, None, None)
    g_z, g_bias = standardise_backward(g, z, mean, variance, bias, *ctx.rest)
    return g_z, None if bias is None else g_bias, g_behind, None, None


standardise.register_autograd(_backward, setup_context=_save)
