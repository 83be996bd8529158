"""An operator of PyTorch's with a way past its dispatcher."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode


class Operator:
    """What :func:`torch.library.custom_op` makes of a function, for whoever looks on: compilers, exporters, tracers,
    modes and subclasses of tensors see one opaque operator. When nobody does, the function is called directly, and its
    gradient is a plain :class:`torch.autograd.Function`, which is what the dispatcher would come to by a longer way; on
    small maps that way costs more than the work itself.
    """

    def __init__(self, name: str, function: Callable[..., Any], device: str) -> None:
        self.seen = torch.library.custom_op(f"tigranet::{name}", function, mutates_args=(), device_types=device)
        self.register_fake = self.seen.register_fake
        self.on = {device: function}
        self.direct: type[torch.autograd.Function] | None = None

    def register_kernel(self, device: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorates the function for another device."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.on[device] = function
            self.seen.register_kernel(device)(function)
            return function

        return register

    def register_autograd(self, backward: Callable[..., Any], setup_context: Callable[..., None]) -> None:
        """As :meth:`torch.library.CustomOpDef.register_autograd`."""
        self.seen.register_autograd(backward, setup_context=setup_context)

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = self.on[inputs[0].device.type](*inputs)
            setup_context(ctx, inputs, output)
            return output

        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self.direct = type(self.seen._name, (torch.autograd.Function,), methods)

    def __call__(self, *args: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if _watched(tensors):
            return self.seen(*args)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            if self.direct is None:
                return self.seen(*args)  # which says that it has no gradient, if one is asked for
            return self.direct.apply(*args)
        return self.on[args[0].device.type](*args)


def by_plain(
    plain: Callable[[], Tensor], inputs: Sequence[Tensor | None], wanted: Sequence[bool], g: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients by those of the ``inputs`` of ``plain`` that are ``wanted``, with gradients of their own: what a
    ``backward`` answers when a second derivative may be asked for. Fused versions have none."""
    by = [tensor for tensor, want in zip(inputs, wanted, strict=True) if want and tensor is not None]
    found = iter(torch.autograd.grad(plain(), by, g, create_graph=True) if by else ())
    return tuple(next(found) if want and x is not None else None for x, want in zip(inputs, wanted, strict=True))


def operator(name: str, device: str = "cpu") -> Callable[[Callable[..., Any]], Operator]:
    """Decorates the function for ``device``."""
    return lambda function: Operator(name, function, device)


def _watched(tensors: list[Tensor]) -> bool:
    """Whether anybody looks on at what is called."""
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or _get_current_dispatch_mode() is not None
        or any(type(tensor) not in (Tensor, torch.nn.Parameter) for tensor in tensors)
    )
