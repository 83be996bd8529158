"""Standardising maps over a batch and its nodes, with what follows. PyTorch's batch normalisation has one block a map
on a GPU, and leaves most of the device idle; on a CPU what follows takes it two or six passes more, and as many back.
"""

from typing import Any

import torch
from torch import Tensor

from tigranet.ops.custom_op import by_plain, operator
from tigranet.ops.dispatch import asked, misfit
from tigranet.ops.thread_pool import share


def standardised(
    z: Tensor, eps: float, bias: Tensor | None = None, large: int = 0, behind: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """``z`` (batch, maps, nodes) less the mean of each map over its standard deviation; the mean; and the variance,
    with 1/n. With a ``bias`` (maps, 1), ReLU of the first and it; with ``large``, the root of the first beyond so many
    deviations; with maps to be ``behind``, these and it, joined. None where there is no fused version, or a plain one
    was asked for."""
    if not z.numel() or asked() == "plain" or misfit(z, bias, behind) is not None:
        return None
    out, mean, variance = standardise(z, bias, behind, eps, large)
    return out, mean, variance


def plainly(z: Tensor, bias: Tensor | None, eps: float, large: int) -> Tensor:
    """The same in PyTorch's operations, alone."""
    variance, mean = torch.var_mean(z, (0, 2), correction=0, keepdim=True)
    x = (z - mean) * (variance + eps).rsqrt()
    return torch.relu(x + bias) if bias is not None else x * (1 + x.abs() / large).rsqrt() if large else x


@operator("standardise")
def standardise(
    z: Tensor, bias: Tensor | None, behind: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops import cpu

    y = z[:, :0] if behind is None else behind
    maps = y.shape[1] + z.shape[1]
    found, mean, variance = z.new_empty(len(z), maps, z.shape[2]), z.new_empty(z.shape[1]), z.new_empty(z.shape[1])
    given = mean if bias is None else bias.flatten()
    signals, offset, ahead = (part.detach().contiguous().numpy() for part in (z, given, y))
    to = mean.numpy(), variance.numpy(), found.numpy()
    share(
        lambda *part: cpu.standardise(signals, offset, bias is not None, ahead, eps, large, *part, *to),
        maps,
        found.numel() * 3,
    )
    return found, mean, variance


@operator("standardise_backward")
def standardise_backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    """The gradients by z, and by the bias. The maps of ``g`` may be a part of more."""
    from tigranet.ops import cpu

    g = g.detach()
    batch, maps, nodes = z.shape
    in_rows = g.stride()[1:] == (nodes, 1) and g.stride(0) % nodes == 0
    g = g if in_rows else g.contiguous()
    apart = g.stride(0) // nodes
    rows = g.as_strided(((batch - 1) * apart + maps, nodes), (nodes, 1)).numpy()
    g_z, g_bias = torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(maps, 1)
    given = mean if bias is None else bias.flatten()
    signals, centre, spread, offset = (part.detach().contiguous().numpy() for part in (z, mean, variance, given))
    of_map = signals, centre, spread, offset, bias is not None, eps, large
    to = g_z.numpy(), g_bias.numpy().reshape(-1)
    share(lambda *part: cpu.standardise_backward(rows, apart, *of_map, *part, *to), maps, z.numel() * 6)
    return g_z, g_bias


@standardise.register_kernel("cuda")
def cuda_standardise(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda_standardise import forward

    return forward(*args)


@standardise_backward.register_kernel("cuda")
def cuda_standardise_backward(*args: Any) -> tuple[Tensor, Tensor]:
    from tigranet.ops.cuda_standardise import backward

    return backward(*args)


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
        found = by_plain(lambda: plainly(z, bias, *ctx.rest), (z, bias), ctx.needs_input_grad[:2], g)
        return (*found, g_behind, None, None)
    g_z, g_bias = standardise_backward(g, z, mean, variance, bias, *ctx.rest)
    return g_z, None if bias is None else g_bias, g_behind, None, None


standardise.register_autograd(_backward, setup_context=_save)
