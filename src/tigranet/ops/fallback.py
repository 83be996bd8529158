"""What happens when a fused kernel cannot be used: one warning per reason, then plain PyTorch."""

import threading
import warnings


class KernelUnavailableError(RuntimeError):
    """A fused kernel cannot be compiled, loaded or launched here. The message is the reason."""


class SlowKernelsWarning(UserWarning):
    """Plain PyTorch computes what a fused kernel would compute faster, or kernels are compiled in every process."""


_warned: set[str] = set()
_lock = threading.Lock()


def warn_once(message: str) -> None:
    """Warn of something the first time it happens in this process.

    Args:
        message: The warning.
    """
    with _lock:
        if message in _warned:
            return
        _warned.add(message)
    warnings.warn(message, SlowKernelsWarning, stacklevel=3)
