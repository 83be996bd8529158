"""The only place that decides between the plain reference and the fused kernels of an operation.

An operation is a function in plain PyTorch, its *reference*, with a check and a fused version beside it:

    @operation
    def statistics(z, active, order, rounding, laplacian): ...          # plain PyTorch: the truth

    @statistics.supported_by_kernels
    def _(z, active, order, rounding, laplacian): ...                   # None, or why no fused kernel fits

    @statistics.fused
    def _(z, active, order, rounding, laplacian): ...                   # the kernels

Calling it runs the fused version where the check finds nothing against it, and the reference everywhere else. Under
``TIGRANET_KERNELS=plain`` the reference always runs; under ``TIGRANET_KERNELS=fused`` a call that has to use the
reference is an error that gives the reason.
"""

from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any

import torch
from torch import Tensor

from tigranet import torch_compat
from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian
from tigranet.ops import cpu
from tigranet.ops.fallback import KernelUnavailableError, warn_once
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.mode import kernel_mode

Check = Callable[..., str | None]


class Operation:
    """A plain function with a fused version. See the module's docstring.

    Args:
        reference: The function in plain PyTorch.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self.reference = reference
        self._check: Check = lambda *args: None
        self._fused: Callable[..., Any] = reference
        update_wrapper(self, reference)

    def supported_by_kernels(self, check: Check) -> Check:
        """Decorate the check.

        Args:
            check: A function with the arguments of the reference. It returns None where a fused kernel fits the
                arguments, else the reason why none does.

        Returns:
            The same function.
        """
        self._check = check
        return check

    def fused(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the fused version.

        Args:
            function: A function with the arguments of the reference.

        Returns:
            The same function.
        """
        self._fused = function
        return function

    def __call__(self, *args: Any) -> Any:
        """Run the fused version where it fits, else the reference.

        Args:
            *args: The arguments of the reference.

        Returns:
            The result of the reference, up to rounding.

        Raises:
            KernelUnavailableError: If ``TIGRANET_KERNELS=fused`` and no fused kernel fits.
        """
        mode = kernel_mode()
        if mode == "plain":
            return self.reference(*args)
        reason = self._check(*args)
        if reason is None:
            return self._fused(*args)
        if mode == "fused":
            name = self.reference.__name__
            raise KernelUnavailableError(
                f"no fused kernel for '{name}': {reason}; unset TIGRANET_KERNELS or set it to 'plain'"
            )
        return self.reference(*args)


def operation(reference: Callable[..., Any]) -> Operation:
    """Decorate the plain reference of an operation.

    Args:
        reference: The function in plain PyTorch.

    Returns:
        The operation.
    """
    return Operation(reference)


def why_unsupported(
    signal: Tensor, *others: Tensor | None, laplacian: Laplacian | None = None, half_on_cuda: bool = False
) -> str | None:
    """Say why no fused kernel can read these tensors: the check that all operations share.

    Args:
        signal: Maps on a graph, (batch, maps, nodes).
        *others: Further signals, parameters and masks, or None for absent ones.
        laplacian: The graph, where the operation reads one.
        half_on_cuda: Whether the CUDA kernels of the operation also read signals in half precision, with ``others`` in
            float32, as autocast gives them.

    Returns:
        The reason, or None if a fused kernel can read them.
    """
    if not isinstance(signal, Tensor) or signal.ndim != 3:
        return "the input is not a signal (batch, maps, nodes)"
    if laplacian is not None:
        if type(laplacian) is not GridLaplacian:
            return f"{laplacian!r} is not a grid"
        if signal.shape[-1] != laplacian.num_nodes:
            return f"a signal of {signal.shape[-1]} nodes does not fit {laplacian!r}"
    is_half = half_on_cuda and signal.device.type == "cuda" and signal.dtype in (torch.bfloat16, torch.float16)
    if not is_half and signal.dtype not in (torch.float32, torch.float64):
        return f"{signal.dtype} is neither float32 nor float64"
    other_dtypes = (torch.float32 if is_half else signal.dtype, torch.bool)
    for other in others:
        if other is not None and (other.device != signal.device or other.dtype not in other_dtypes):
            return f"{other.dtype} on {other.device} cannot be combined with {signal.dtype} on {signal.device}"
    if (reason := _why_no_kernels(signal.device)) is not None:
        return reason
    if torch_compat.in_function_transform():
        return "functorch transforms and forward-mode differentiation use plain PyTorch"
    return None


def why_beyond_cuda_limits(
    why_kernel_unsupported: Check, signal: Tensor, laplacian: GridLaplacian, backward: bool
) -> str | None:
    """Say why a CUDA kernel does not fit on the GPU of a signal.

    Args:
        why_kernel_unsupported: ``why_unsupported`` of a module in :mod:`tigranet.ops.cuda`.
        signal: The maps, on a GPU.
        laplacian: The grid.
        backward: Whether the backward kernel is needed too.

    Returns:
        The reason, or None if the kernel fits.
    """
    grid, limits = GridSpec.of(laplacian), _cuda_limits(signal.device)
    reason = why_kernel_unsupported(grid, signal.itemsize, limits, False)
    if reason is None and backward:
        reason = why_kernel_unsupported(grid, signal.itemsize, limits, True)
    return reason


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Return whether PyTorch records operations on any of the tensors.

    Args:
        *tensors: Tensors, or None for absent ones.

    Returns:
        True if gradients are enabled and any of the tensors requires one.
    """
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


@torch_compat.constant_while_tracing
def _why_no_kernels(device: torch.device) -> str | None:
    """Say why there are no fused kernels at all on a device, and warn where the device normally has some."""
    if device.type == "cpu":
        reason = _why_no_cpu_kernels()
    elif device.type == "cuda" and not torch.version.hip:
        from tigranet.ops import cuda

        reason = torch_compat.missing_for_dispatch() or cuda.why_unavailable(device)
    else:
        return f"there are kernels for CPUs and NVIDIA GPUs, not for {device}"
    if reason is not None and kernel_mode() != "fused":  # under "fused", an error gives the reason
        warn_once(f"tigranet computes in plain PyTorch on {device.type}, which is slower: {reason}")
    return reason


@cache
def _why_no_cpu_kernels() -> str | None:
    return torch_compat.missing_for_dispatch() or cpu.why_unavailable()


@torch_compat.constant_while_tracing
def _cuda_limits(device: torch.device) -> Any:
    from tigranet.ops.cuda.limits import device_limits

    return device_limits(device)
