"""Standardising maps over a batch and its nodes, on a GPU: PyTorch's batch normalisation has one block a map there, and
leaves most of the device idle. On a CPU it is PyTorch's."""

from typing import Any

import torch
from torch import Tensor

from tigranet.kernels.choice import asked, misfit
from tigranet.kernels.operator import operator


def standardised(z: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor] | None:
    """``z`` (batch, maps, nodes) less the mean of each map over its standard deviation; the mean; and the variance,
    with 1/n. None where there is no fused version, or a plain one was asked for."""
    if not z.is_cuda or not z.numel() or asked() == "plain" or misfit(z) is not None:
        return None
    out, mean, variance = standardise(z, eps)
    return out, mean, variance


@operator("standardise", "cuda")
def standardise(z: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.kernels.cuda_standardise import forward

    return forward(z.contiguous(), eps)


@operator("standardise_backward", "cuda")
def standardise_backward(g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, eps: float) -> Tensor:
    from tigranet.kernels.cuda_standardise import backward

    return backward(g.contiguous(), z.contiguous(), mean, variance, eps)


@standardise.register_fake
def _(z: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    contiguous = torch.empty_like(z, memory_format=torch.contiguous_format)
    return contiguous, z.new_empty(z.shape[1]), z.new_empty(z.shape[1])


@standardise_backward.register_fake
def _(g: Tensor, z: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(z, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    z, ctx.eps = inputs
    _, mean, variance = output
    ctx.save_for_backward(z, mean, variance)
    ctx.mark_non_differentiable(mean, variance)


def _backward(ctx: Any, g: Tensor, *_: Any) -> tuple[Any, None]:
    z, mean, variance = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be asked for: by PyTorch's own operations
        spread, centre = torch.var_mean(z, (0, 2), correction=0, keepdim=True)
        (g_z,) = torch.autograd.grad((z - centre) * (spread + ctx.eps).rsqrt(), z, g, create_graph=True)
        return g_z, None
    return standardise_backward(g, z, mean, variance, ctx.eps), None


standardise.register_autograd(_backward, setup_context=_save)
