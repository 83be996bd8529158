"""A PyTorch custom operator that is called directly where nothing observes it, and that always has a result."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from tigranet import torch_compat
from tigranet.ops.fallback import KernelUnavailableError, warn_once
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.mode import kernel_mode, using

GRID_SCHEMA = "SymInt height, SymInt width, int neighbours, bool torus, float diagonal"
GRID_FIELDS = len(GridSpec._fields)


class CustomOp:
    """One operator, registered with :func:`torch.library.custom_op` and callable without PyTorch's dispatcher.

    Compilers, exporters, tracers, dispatch modes and tensor subclasses see one opaque operator. Where nothing of the
    kind is active, the implementation for the device is called directly, and its gradient is a plain
    :class:`torch.autograd.Function`. The dispatcher would arrive at the same calls, but on small maps it takes longer
    than the kernel.

    An implementation that cannot run raises :class:`KernelUnavailableError`. The operator then warns once and computes
    the result by ``fallback``. Where fused kernels are required (``TIGRANET_KERNELS=fused``), it raises the error.

    Args:
        name: Name of the operator, without the namespace ``tigranet::``.
        arguments: The arguments in PyTorch's schema language, such as ``"Tensor z, int order"``. With ``grid``, the
            five numbers of a :class:`GridSpec` follow; callers pass the GridSpec itself, as the last argument.
        returns: The results in the schema language.
        fallback: A function with the arguments of the operator, in plain PyTorch.
        grid: Whether the last argument is a grid.
    """

    def __init__(
        self, name: str, arguments: str, returns: str, fallback: Callable[..., Any], grid: bool = True
    ) -> None:
        self.name, self.fallback, self.has_grid = name, fallback, grid
        self.schema = f"({arguments}{', ' + GRID_SCHEMA if grid else ''}) -> {returns}"
        self._implementations: dict[str, Callable[..., Any]] = {}
        self._registered: Any = None
        self._function: type[torch.autograd.Function] | None = None

    def implementation(self, device: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the implementation for a device type.

        Args:
            device: Device type, ``"cpu"`` or ``"cuda"``.

        Returns:
            A decorator that leaves the function as it is.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._implementations[device] = function

            def from_flat_arguments(*flat: Any) -> Any:
                return self._run(device, *self._pack(flat))

            if self._registered is None:
                self._registered = torch.library.custom_op(
                    f"tigranet::{self.name}",
                    from_flat_arguments,
                    mutates_args=(),
                    device_types=device,
                    schema=self.schema,
                )
            else:
                self._registered.register_kernel(device)(from_flat_arguments)
            return function

        return register

    def runs_on(self, device: str) -> bool:
        """Return whether there is an implementation for a device type.

        Args:
            device: Device type, ``"cpu"`` or ``"cuda"``.
        """
        return device in self._implementations

    def shapes(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the function that returns empty results of the right shapes, for compilers.

        Args:
            function: A function with the arguments of the operator.

        Returns:
            The same function.
        """
        self._registered.register_fake(lambda *flat: function(*self._pack(flat)))
        return function

    def gradient(self, setup_context: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the backward function, as for :meth:`torch.library.CustomOpDef.register_autograd`.

        Args:
            setup_context: ``setup_context(ctx, inputs, output)`` saves what the backward function needs.

        Returns:
            A decorator of ``backward(ctx, *gradients)``, which returns one gradient per argument of the operator; a
            grid counts as one argument.
        """

        def register(backward: Callable[..., Any]) -> Callable[..., Any]:
            def setup_from_flat_arguments(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                setup_context(ctx, self._pack(inputs), output)

            def backward_to_flat_arguments(ctx: Any, *gradients: Any) -> Any:
                result = backward(ctx, *gradients)
                return (*result, *(None,) * (GRID_FIELDS - 1)) if self.has_grid else result

            self._registered.register_autograd(backward_to_flat_arguments, setup_context=setup_from_flat_arguments)

            def direct_forward(ctx: Any, *inputs: Any) -> Any:
                output = self._run(inputs[0].device.type, *inputs)
                setup_context(ctx, inputs, output)
                # PyTorch runs backward passes on a GPU in another thread, where using() is not in force
                ctx.requires_kernels = inputs[0].is_cuda and kernel_mode() == "fused"
                return output

            def direct_backward(ctx: Any, *gradients: Any) -> Any:
                if not ctx.requires_kernels:
                    return backward(ctx, *gradients)
                with using("fused"):
                    return backward(ctx, *gradients)

            methods = {"forward": staticmethod(direct_forward), "backward": staticmethod(direct_backward)}
            self._function = type(self.name, (torch.autograd.Function,), methods)
            return backward

        return register

    def __call__(self, *args: Any) -> Any:
        """Run the operator on the device of its first argument.

        Args:
            *args: The arguments of the operator.

        Returns:
            Its results.
        """
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if torch_compat.is_observed(tensors):
            return self.registered(*args)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            if self._function is None:
                return self.registered(*args)  # PyTorch raises its own error if the gradient is computed
            return self._function.apply(*args)
        return self._run(args[0].device.type, *args)

    def registered(self, *args: Any) -> Any:
        """Run the operator through PyTorch's dispatcher.

        Args:
            *args: The arguments of the operator.

        Returns:
            Its results.
        """
        return self._registered(*args[:-1], *args[-1]) if self.has_grid else self._registered(*args)

    def _pack(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Turn the last five arguments of the schema into a GridSpec."""
        if not self.has_grid:
            return tuple(flat)
        return (*flat[:-GRID_FIELDS], GridSpec(*flat[-GRID_FIELDS:]))

    def _run(self, device: str, *args: Any) -> Any:
        try:
            return self._implementations[device](*args)
        except KernelUnavailableError as error:
            if kernel_mode() == "fused":
                raise KernelUnavailableError(
                    f"no fused kernel for '{self.name}': {error}; unset TIGRANET_KERNELS or set it to 'plain'"
                ) from error
            warn_once(f"tigranet computes in plain PyTorch on {device}, which is slower: {error}")
        return self.fallback(*args)


def reference_gradients(
    reference: Callable[..., Tensor], inputs: Sequence[Any], needs_gradient: Sequence[bool], upstream: Tensor
) -> tuple[Tensor | None, ...]:
    """Differentiate a plain PyTorch function, with a graph for second derivatives.

    Args:
        reference: The function of ``inputs``.
        inputs: Its arguments, tensors and others.
        needs_gradient: For each argument, whether its gradient is needed.
        upstream: The gradient by the result.

    Returns:
        One gradient per argument, None where it is not needed or the argument is no tensor.
    """
    needed = [need and isinstance(x, Tensor) for x, need in zip(inputs, needs_gradient, strict=True)]
    if not any(needed):
        return (None,) * len(needed)
    variables = [x for x, need in zip(inputs, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(reference(*inputs), variables, upstream, create_graph=True))
    return tuple(next(gradients) if need else None for need in needed)


def gradients_in_new_thread(
    reference: Callable[..., Tensor], inputs: Sequence[Any], needs_gradient: Sequence[bool], upstream: Tensor
) -> tuple[Tensor | None, ...]:
    """Differentiate a plain PyTorch function from inside an operator: the fallback of a fused backward kernel.

    PyTorch records no operations inside an operator's implementation. In a new thread it does. That thread computes the
    gradients itself: PyTorch's thread for the GPU may be the one that waits here.

    Args:
        reference: The function of ``inputs``.
        inputs: Its arguments, tensors and others.
        needs_gradient: For each argument, whether its gradient is needed.
        upstream: The gradient by the result.

    Returns:
        One gradient per argument, None where it is not needed or the argument is no tensor.
    """
    stream = torch.cuda.current_stream(upstream.device) if upstream.is_cuda else None

    def differentiate() -> tuple[Tensor | None, ...]:
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False), torch.cuda.stream(stream):
            variables = [
                x.detach().requires_grad_(need) if isinstance(x, Tensor) and x.is_floating_point() else x
                for x, need in zip(inputs, needs_gradient, strict=True)
            ]
            gradients = reference_gradients(reference, variables, needs_gradient, upstream.detach())
        return tuple(None if gradient is None else gradient.detach() for gradient in gradients)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(differentiate).result()
