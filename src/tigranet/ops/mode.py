"""Whether fused kernels are wanted: ``auto``, ``plain`` or ``fused``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from tigranet.torch_compat import constant_while_tracing

Mode = Literal["auto", "plain", "fused"]

_MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}
_mode: ContextVar[Mode | None] = ContextVar("tigranet_kernels", default=None)


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Select plain or fused kernels inside a ``with`` block, in this thread only.

    It takes precedence over the environment variable ``TIGRANET_KERNELS``.

    Args:
        mode: ``"plain"`` for plain PyTorch, ``"fused"`` for fused kernels or an error where there is none, ``"auto"``
            for fused kernels wherever there is one.

    Raises:
        ValueError: If ``mode`` is none of these.

    Example:
        >>> with using("plain"):
        ...     kernel_mode()
        'plain'
    """
    token = _mode.set(_check_mode(mode, "the kernel mode"))
    try:
        yield
    finally:
        _mode.reset(token)


@constant_while_tracing
def kernel_mode() -> Mode:
    """Return the mode in force: that of :func:`using`, else ``TIGRANET_KERNELS``, else ``"auto"``.

    Raises:
        ValueError: If the environment variable has another value.
    """
    return _mode.get() or _check_mode(os.environ.get("TIGRANET_KERNELS") or "auto", "TIGRANET_KERNELS")


def _check_mode(mode: str, name: str) -> Mode:
    if mode not in _MODES:
        raise ValueError(f"expected {name} to be plain, fused or auto, got {mode!r}")
    return _MODES[mode]
