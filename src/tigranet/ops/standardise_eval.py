"""The operation that standardises maps by known moments, and what follows in the same pass.

PyTorch makes three to seven passes. For one image each of those passes takes less time than starting the threads that
it is divided among.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import as_array
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, reference_gradients
from tigranet.ops.dispatch import needs_gradient, operation, why_unsupported
from tigranet.ops.mode import kernel_mode
from tigranet.ops.standardise import transform


@operation
def standardise_eval(
    z: Float[Tensor, "batch maps nodes"],
    mean: Float[Tensor, " maps"],
    variance: Float[Tensor, " maps"],
    eps: float,
    bias: Float[Tensor, "maps 1"] | None,
    large: int,
    after: Float[Tensor, "batch others nodes"] | None,
) -> Float[Tensor, "batch joined nodes"]:
    """Subtract the known mean of each map and divide by the known standard deviation.

    Args:
        z: Maps.
        mean: The mean of each map.
        variance: The variance of each map.
        eps: The number added to the variance.
        bias: See :func:`tigranet.ops.standardise.transform`.
        large: See :func:`tigranet.ops.standardise.transform`.
        after: See :func:`tigranet.ops.standardise.transform`.

    Returns:
        The transformed maps.
    """
    return transform(F.batch_norm(z, mean, variance, eps=eps), bias, after, large)


@standardise_eval.supported_by_kernels
def _check(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> str | None:
    if bias is not None and after is not None:
        return "no kernel places rectified maps after other maps"
    return why_unsupported(z, mean, variance, bias, after)


@standardise_eval.fused
def _fused(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> Tensor:
    # Where gradients are needed, autograd is faster than computing the reference again in the backward pass; and
    # without a bias or other maps, batch normalisation is one pass already.
    plain_is_faster = needs_gradient(z, bias, after) or (bias is None) == (after is None)
    if plain_is_faster and kernel_mode() != "fused":
        return standardise_eval.reference(z, mean, variance, eps, bias, large, after)
    return forward(z, mean, variance, eps, bias, large, after)


forward = CustomOp(
    "standardise_eval",
    "Tensor z, Tensor mean, Tensor variance, float eps, Tensor? bias, int large, Tensor? after",
    "Tensor",
    standardise_eval.reference,
    grid=False,
)


@forward.implementation("cpu")
def _cpu(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> Tensor:
    from tigranet.ops.cpu import standardise as kernels

    out = _empty(z, mean, variance, eps, bias, large, after)
    signals, centre, spread, results = as_array(z), as_array(mean), as_array(variance), out.numpy()
    if bias is None:
        first_maps = as_array(z[:, :0] if after is None else after)

        def run(first: int, last: int) -> None:
            kernels.compressed_eval(signals, centre, spread, eps, large, first_maps, first, last, results)
    else:
        offsets = as_array(bias).reshape(-1)

        def run(first: int, last: int) -> None:
            kernels.rectified_eval(signals, centre, spread, eps, offsets, first, last, results)

    share(run, out.shape[0] * out.shape[1], out.numel())
    return out


@forward.implementation("cuda")
def _cuda(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> Tensor:
    from tigranet.ops.cuda import standardise as kernels

    return kernels.evaluate(z, mean, variance, eps, bias, large, after)


@forward.shapes
def _empty(
    z: Tensor, mean: Tensor, variance: Tensor, eps: float, bias: Tensor | None, large: int, after: Tensor | None
) -> Tensor:
    batch, maps, nodes = z.shape
    return z.new_empty(batch, maps if after is None else after.shape[1] + maps, nodes)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    z, mean, variance, ctx.eps, bias, ctx.large, after = inputs
    ctx.save_for_backward(z, mean, variance, bias, after)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor) -> tuple[Any, ...]:
    z, mean, variance, bias, after = ctx.saved_tensors
    inputs = (z, mean, variance, ctx.eps, bias, ctx.large, after)
    with torch.enable_grad():
        gradients = reference_gradients(standardise_eval.reference, inputs, ctx.needs_input_grad, g)
    if torch.is_grad_enabled():
        return gradients
    return tuple(None if gradient is None else gradient.detach() for gradient in gradients)
