"""Check a property for random values: a number of examples in ``make test``, a number of seconds in ``make fuzz``."""

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

SECONDS = float(os.environ["TIGRANET_FUZZ_SECONDS"]) if "TIGRANET_FUZZ_SECONDS" in os.environ else None
"""Time for each target in ``make fuzz``; None in ``make test``."""
MAX_EXTRA_MEGABYTES = 1000
"""Largest growth of the process while a target runs."""
MAX_EXAMPLE_SECONDS = 10.0
"""Largest CPU time of one example."""
MAX_MESSAGE = 2000
"""Largest number of characters of an error message: it may name a path, but not repeat a file."""
EXAMPLES_PER_ROUND = 300


def fuzz(
    check: Callable[[Any], None], values: SearchStrategy[Any], *, seconds: float | None = None, examples: int = 100
) -> None:
    """Call ``check`` with random values.

    In ``make test`` the values are the same every time, so that a failure can be repeated. In ``make fuzz`` they are
    new. Hypothesis shows the smallest value for which the check fails.

    Args:
        check: A function of one value that raises if the property does not hold.
        values: Where the values come from.
        seconds: How long to continue in ``make test``, with new values every time; None for ``examples`` values.
        examples: Number of values in ``make test``.
    """
    first_seed = 0 if SECONDS is None else random.SystemRandom().randrange(10**9)
    limit = seconds if SECONDS is None else SECONDS
    end = time.monotonic() + (limit or 0)
    count = examples if limit is None else EXAMPLES_PER_ROUND

    def timed(value: Any) -> None:
        if limit is not None and time.monotonic() > end:
            return  # a round that has begun ends quickly
        start = time.process_time()
        check(value)
        duration = time.process_time() - start
        assert duration < MAX_EXAMPLE_SECONDS, f"it took {duration:.1f} s"

    options = settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    number = first_seed
    with limited_memory():
        while True:
            seed(number)(options(given(values)(timed)))()
            number += 1
            if time.monotonic() >= end:
                break


@contextmanager
def limited_memory() -> Iterator[None]:
    """Check that the process does not grow by more than ``MAX_EXTRA_MEGABYTES`` meanwhile. Only Linux can tell."""
    if not Path("/proc/self/clear_refs").exists():
        yield
        return
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    start = _kilobytes("VmRSS")
    yield
    extra = (_kilobytes("VmHWM") - start) / 1024
    assert extra < MAX_EXTRA_MEGABYTES, f"it took {extra:,.0f} MB"


def _kilobytes(name: str) -> int:
    match = re.search(rf"^{name}:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match
    return int(match[1])


def check_message(error: Exception) -> None:
    """Check that an error can be shown to a user: one line that is not endless."""
    message = str(error)
    assert message.strip()
    assert len(message.splitlines()) == 1, f"more than one line: {message[:500]!r}"
    assert len(message) <= MAX_MESSAGE, f"{len(message):,} characters: {message[:200]!r}"
