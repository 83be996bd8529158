"""Record the warnings about kernels, which are otherwise given once per process."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tigranet.ops import cpu, fallback


@contextmanager
def recorded_kernel_warnings() -> Iterator[list[str]]:
    """Yield a list that receives the messages at the end of the block, as if no warning had been given before."""
    messages: list[str] = []
    cpu.why_unavailable.cache_clear()
    try:
        with mock.patch.object(fallback, "_warned", set()), warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always", fallback.SlowKernelsWarning)
            yield messages
        messages += [str(each.message) for each in record if each.category is fallback.SlowKernelsWarning]
    finally:
        cpu.why_unavailable.cache_clear()
