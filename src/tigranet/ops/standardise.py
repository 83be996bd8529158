"""The operation that standardises maps over a batch and its nodes, and what follows in the same pass.

PyTorch's batch normalisation starts one block per map on a GPU, which leaves most of the device idle. On a CPU, the
steps that follow it take two to six more passes over the maps, and as many in the backward pass.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import as_array
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.custom_op import CustomOp, gradients_in_new_thread, reference_gradients
from tigranet.ops.dispatch import operation, why_unsupported


@operation
def standardise(
    z: Float[Tensor, "batch maps nodes"],
    bias: Float[Tensor, "maps 1"] | None,
    after: Float[Tensor, "batch others nodes"] | None,
    eps: float,
    large: int,
) -> tuple[Float[Tensor, "batch joined nodes"], Float[Tensor, " maps"], Float[Tensor, " maps"]]:
    r"""Subtract the mean of each map over the batch and its nodes and divide by the standard deviation.

    The standardised maps :math:`x = (z - \mathrm{E} z) / \sqrt{\mathrm{Var} z + \epsilon}` are then passed to
    :func:`transform`.

    Args:
        z: Maps, with at least two numbers per map.
        bias: See :func:`transform`.
        after: See :func:`transform`.
        eps: The number added to the variance.
        large: See :func:`transform`.

    Returns:
        The transformed maps, and the mean and the variance (with 1/n) of each map, which have no gradient.
    """
    count = z.numel() // z.shape[1]
    moments_dtype = torch.promote_types(z.dtype, torch.float32)
    mean, variance = (z.new_zeros(z.shape[1], dtype=moments_dtype) for _ in range(2))
    x = F.batch_norm(z, mean, variance, training=True, momentum=1.0, eps=eps)  # stores mean and unbiased variance
    return transform(x, bias, after, large), mean, variance * ((count - 1) / count)


def transform(
    x: Float[Tensor, "batch maps nodes"],
    bias: Float[Tensor, "maps 1"] | None,
    after: Float[Tensor, "batch others nodes"] | None,
    large: int,
) -> Float[Tensor, "batch joined nodes"]:
    r"""Apply what follows the standardisation of maps.

    Args:
        x: Standardised maps.
        bias: If given, the result is ReLU(x + bias).
        after: If given, the result is placed after these maps.
        large: If not 0, values beyond this many standard deviations are compressed to about their square root:
            :math:`x / \sqrt{1 + |x| / \mathrm{large}}`. Not together with ``bias``.

    Returns:
        The transformed maps.
    """
    if bias is not None:
        x = torch.relu(x + bias)
    elif large:
        x = x * (1 + x.abs() / large).rsqrt()
    return x if after is None else torch.cat((after, x), dim=1)


@standardise.supported_by_kernels
def _check(z: Tensor, bias: Tensor | None, after: Tensor | None, eps: float, large: int) -> str | None:
    if (reason := why_unsupported(z, bias, after)) is not None:
        return reason
    return None if z.numel() else "the maps are empty"


@standardise.fused
def _fused(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    return forward(*args)


def _reference_output(z: Tensor, bias: Tensor | None, eps: float, large: int) -> Tensor:
    out, _, _ = standardise.reference(z, bias, None, eps, large)
    return out


def _reference_backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    g_z, g_bias, *_ = gradients_in_new_thread(_reference_output, (z, bias, eps, large), (True, True, False, False), g)
    assert g_z is not None
    return g_z, z.new_zeros(z.shape[1], 1) if g_bias is None else g_bias


forward = CustomOp(
    "standardise",
    "Tensor z, Tensor? bias, Tensor? after, float eps, int large",
    "(Tensor, Tensor, Tensor)",
    standardise.reference,
    grid=False,
)
backward = CustomOp(
    "standardise_backward",
    "Tensor g, Tensor z, Tensor mean, Tensor variance, Tensor? bias, float eps, int large",
    "(Tensor, Tensor)",
    _reference_backward,
    grid=False,
)


@forward.implementation("cpu")
def _cpu(z: Tensor, bias: Tensor | None, after: Tensor | None, eps: float, large: int) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cpu import standardise as kernels

    y = z[:, :0] if after is None else after
    maps = y.shape[1] + z.shape[1]
    out, mean, variance = z.new_empty(len(z), maps, z.shape[2]), z.new_empty(z.shape[1]), z.new_empty(z.shape[1])
    offsets = mean if bias is None else bias.flatten()
    signals, offset, first_maps = as_array(z), as_array(offsets), as_array(y)
    results = mean.numpy(), variance.numpy(), out.numpy()
    share(
        lambda first, last: kernels.standardise(
            signals, offset, bias is not None, first_maps, eps, large, first, last, *results
        ),
        maps,
        out.numel() * 3,
    )
    return out, mean, variance


@backward.implementation("cpu")
def _cpu_backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    from tigranet.ops.cpu import standardise as kernels

    g = g.detach()
    batch, maps, nodes = z.shape
    if g.stride()[1:] != (nodes, 1) or g.stride(0) % nodes:  # the kernel also reads some maps of a larger tensor
        g = g.contiguous()
    rows_per_image = g.stride(0) // nodes
    rows = g.as_strided(((batch - 1) * rows_per_image + maps, nodes), (nodes, 1)).numpy()
    g_z, g_bias = torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(maps, 1)
    offsets = mean if bias is None else bias.flatten()
    inputs = as_array(z), as_array(mean), as_array(variance), as_array(offsets), bias is not None, eps, large
    results = g_z.numpy(), g_bias.numpy().reshape(-1)
    share(
        lambda first, last: kernels.standardise_backward(rows, rows_per_image, *inputs, first, last, *results),
        maps,
        z.numel() * 6,
    )
    return g_z, g_bias


@forward.implementation("cuda")
def _cuda(
    z: Tensor, bias: Tensor | None, after: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor, Tensor]:
    from tigranet.ops.cuda import standardise as kernels

    return kernels.forward(z, bias, after, eps, large)


@backward.implementation("cuda")
def _cuda_backward(
    g: Tensor, z: Tensor, mean: Tensor, variance: Tensor, bias: Tensor | None, eps: float, large: int
) -> tuple[Tensor, Tensor]:
    from tigranet.ops.cuda import standardise as kernels

    return kernels.backward(g, z, mean, variance, bias, eps, large)


@forward.shapes
def _shape(z: Tensor, bias: Tensor | None, after: Tensor | None, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    num_before = 0 if after is None else after.shape[1]
    out = z.new_empty(z.shape[0], num_before + z.shape[1], z.shape[2])
    return out, z.new_empty(z.shape[1]), z.new_empty(z.shape[1])


@backward.shapes
def _shape_backward(g: Tensor, z: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(z.shape[1], 1)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    z, bias, after, *ctx.rest = inputs
    ctx.num_before = None if after is None else after.shape[1]
    _, mean, variance = output
    ctx.save_for_backward(z, bias, mean, variance)
    ctx.mark_non_differentiable(mean, variance)


@forward.gradient(_save)
def _gradient(ctx: Any, g: Tensor, *_: Any) -> tuple[Any, ...]:
    z, bias, mean, variance = ctx.saved_tensors
    g_after = None if ctx.num_before is None else g[:, : ctx.num_before]
    g = g[:, ctx.num_before or 0 :]
    if torch.is_grad_enabled():  # a second derivative may be needed, and only the reference has one
        needed = (*ctx.needs_input_grad[:2], False, False)
        g_z, g_bias, *_rest = reference_gradients(_reference_output, (z, bias, *ctx.rest), needed, g)
    else:
        g_z, g_bias = backward(g, z, mean, variance, bias, *ctx.rest)
    return g_z, None if bias is None else g_bias, g_after, None, None
