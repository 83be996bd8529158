"""Record the warnings about kernels, which are otherwise given once per process."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tigranet.ops import cpu, dispatch, fallback


@contextmanager
def recorded_kernel_warnings() -> Iterator[list[str]]:
    """Yield a list that receives the messages at the end of the block, as if no warning had been given before."""
    messages: list[str] = []
    _forget_reasons()
    try:
        with mock.patch.object(fallback, "_warned", set()), warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always", fallback.SlowKernelsWarning)
            yield messages
        messages += [str(each.message) for each in record if each.category is fallback.SlowKernelsWarning]
    finally:
        _forget_reasons()


def _forget_reasons() -> None:
    cpu.why_unavailable.cache_clear()
    dispatch._why_no_cpu_kernels.cache_clear()
