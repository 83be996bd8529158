"""The oriented products as one operator: a pair of maps is read once, and nothing saved but the input."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tigranet.kernels.choice import choose, misfit
from tigranet.kernels.layout import describe, grid_of
from tigranet.kernels.threads import share

_plain: Callable[..., Tensor]


def fused_products(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorates ``plain(f, g, laplacian, mirrored)``, which answers (batch, kinds * pairs, nodes)."""
    global _plain
    _plain = plain
    return choose(plain, _fused)


def _fused(f: Tensor, g: Tensor, laplacian: Any, mirrored: bool) -> Tensor | str:
    if (why := misfit(f, g, laplacian=laplacian)) is not None:
        return why
    return "on a GPU" if f.is_cuda else oriented_products(f, g, mirrored, *describe(laplacian))


@torch.library.custom_op("tigranet::oriented_products", mutates_args=(), device_types="cpu")
def oriented_products(
    f: Tensor, g: Tensor, mirrored: bool, height: int, width: int, neighbours: int, torus: bool, diagonal: float
) -> Tensor:
    from tigranet.kernels import cpu_oriented

    batch, pairs, nodes = f.shape
    out = f.new_empty(batch, 2 if mirrored else 4, pairs, nodes)
    wraps = torus and height > 2, torus and width > 2
    arrays = [tensor.detach().contiguous().numpy() for tensor in (f, g)]
    share(
        lambda first, last: cpu_oriented.products(*arrays, height, width, *wraps, mirrored, first, last, out.numpy()),
        batch * pairs,
        8 * f.numel(),
    )
    return out.flatten(1, 2)


@torch.library.custom_op("tigranet::oriented_products_backward", mutates_args=(), device_types="cpu")
def oriented_products_backward(
    upstream: Tensor,
    f: Tensor,
    g: Tensor,
    mirrored: bool,
    height: int,
    width: int,
    neighbours: int,
    torus: bool,
    diagonal: float,
) -> tuple[Tensor, Tensor]:
    from tigranet.kernels import cpu_oriented

    batch, pairs, nodes = f.shape
    wraps = torus and height > 2, torus and width > 2
    given = upstream.detach().contiguous().reshape(batch, 2 if mirrored else 4, pairs, nodes).numpy()
    arrays = [tensor.detach().contiguous().numpy() for tensor in (f, g)]
    g_f, g_g = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (f, g))
    outs = g_f.numpy(), g_g.numpy()
    share(
        lambda first, last: cpu_oriented.products_backward(
            given, *arrays, height, width, *wraps, mirrored, first, last, *outs
        ),
        batch * pairs,
        24 * f.numel(),
    )
    return g_f, g_g


@oriented_products.register_fake
def _(f: Tensor, g: Tensor, mirrored: bool, *_: Any) -> Tensor:
    return f.new_empty(f.shape[0], (2 if mirrored else 4) * f.shape[1], f.shape[2])


@oriented_products_backward.register_fake
def _(upstream: Tensor, f: Tensor, g: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return tuple(torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (f, g))  # type: ignore


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    f, g, *ctx.rest = inputs
    ctx.save_for_backward(f, g)


def _backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
    f, g = ctx.saved_tensors
    if torch.is_grad_enabled():  # a second derivative may be asked for: only the plain version has one
        mirrored, *grid = ctx.rest
        again = _plain(f, g, grid_of(*grid), mirrored)
        wanted = ctx.needs_input_grad[:2]
        inputs = [tensor for tensor, want in zip((f, g), wanted, strict=True) if want]
        found = iter(torch.autograd.grad(again, inputs, upstream, create_graph=True))
        gradients = tuple(next(found) if want else None for want in wanted)
    else:
        gradients = oriented_products_backward(upstream, f, g, *ctx.rest)
    return (*gradients, *(None for _ in ctx.rest))


oriented_products.register_autograd(_backward, setup_context=_save)
