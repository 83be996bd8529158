"""Fused or plain: which of the two runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor

from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian

Mode = Literal["auto", "plain", "fused"]

HAS_NUMBA = find_spec("numba") is not None  # it is not imported for this

_mode: Mode | None = None


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Force plain or fused kernels inside a ``with``, whatever ``TIGRANET_KERNELS`` says.

    >>> with using("plain"):
    ...     pass
    """
    global _mode
    before, _mode = _mode, mode
    try:
        yield
    finally:
        _mode = before


def asked() -> str:
    """The mode in force: ``auto`` unless ``TIGRANET_KERNELS`` or :func:`using` says otherwise."""
    mode = _mode or os.environ.get("TIGRANET_KERNELS") or "auto"
    if mode not in ("auto", "plain", "fused"):
        raise ValueError(f"TIGRANET_KERNELS is plain, fused or auto, got {mode!r}")
    return mode


def choose(plain: Callable[..., Tensor], fused: Callable[..., Tensor | str]) -> Callable[..., Tensor]:
    """``fused`` where it fits, else ``plain``. ``fused`` answers the reason, a string, where it does not."""

    @wraps(plain)
    def chosen(*args: Any, **kwargs: Any) -> Tensor:
        mode = asked()
        if mode != "plain":
            answer = fused(*args, **kwargs)
            if not isinstance(answer, str):
                return answer
            if mode == "fused":
                cure = "unset TIGRANET_KERNELS, or set it to 'plain'"
                raise RuntimeError(f"a fused kernel was asked for, but there is none {answer}: {cure}")
        return plain(*args, **kwargs)

    return chosen


def misfit(*tensors: Tensor | None, laplacian: Laplacian | None = None) -> str | None:
    """Why no fused kernel can read these signals and masks, or None if one can; the first is a signal."""
    signal = tensors[0]
    if not isinstance(signal, Tensor) or signal.ndim != 3:
        return "for what is not a signal (batch, maps, nodes)"
    if laplacian is not None:
        if type(laplacian) is not GridLaplacian:
            return f"for {laplacian!r}, which is no grid"
        if signal.shape[-1] != laplacian.num_nodes:
            return f"for {signal.shape[-1]} nodes on {laplacian!r}"
    if signal.dtype not in (torch.float32, torch.float64):
        return f"for {signal.dtype}"
    for tensor in tensors[1:]:
        if tensor is not None and (tensor.device != signal.device or tensor.dtype not in (signal.dtype, torch.bool)):
            return f"for {tensor.dtype} on {tensor.device} beside {signal.dtype} on {signal.device}"
    if signal.device.type == "cpu":
        if not HAS_NUMBA:
            return "without numba: pip install numba"
    elif signal.device.type != "cuda" or torch.version.hip:
        return f"for {signal.device}"
    if _transformed() or torch.autograd.forward_ad._current_level >= 0:
        return "under a functorch transform or forward-mode differentiation"
    return None


def _transformed() -> bool:
    return torch._C._functorch.peek_interpreter_stack() is not None


# a compiler asks once, while it traces: left to itself it takes the stack for anything but empty. This is all that
# torch.compiler.assume_constant_result does, but that loads the whole compiler, a second at every start
_transformed._dynamo_marked_constant = True  # type: ignore[attr-defined]
