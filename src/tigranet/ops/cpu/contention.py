"""Whether other work keeps a core busy that one of our threads would compute on.

Operations on small maps take about a millisecond, and our threads wait for each other after each of them. Beside a
process that never waits, Linux tends to place both of our threads on one core: they take turns there, and are slower
than one thread alone, which computes without a pause. The results do not depend on the number of threads.

A thread notices this by its own clocks: while others use its core, its processor time falls behind the time that
passes.
"""

from collections.abc import Callable
from time import perf_counter, thread_time

WINDOW_SECONDS = 0.03
"""How long the threads are observed before each decision, long enough for several turns of the operating system."""
MIN_SHARE = 0.75
"""Share of the time in which a thread computes below which it counts as interrupted. Undisturbed, it is close to 1."""
PAUSE_SECONDS = 0.5
"""How long one thread fewer computes, before all of them are observed again."""
MAX_PAUSE_SECONDS = 4.0
"""The pause doubles up to this while the other work goes on, because all threads are slow while they are observed."""


class Contention:
    """Finds out whether the thread that divides work among others has to share its core.

    Args:
        clock: Returns the time in seconds.
        thread_clock: Returns the processor time of the calling thread in seconds.
    """

    def __init__(
        self, clock: Callable[[], float] = perf_counter, thread_clock: Callable[[], float] = thread_time
    ) -> None:
        self._clock, self._thread_clock = clock, thread_clock
        self._seconds = self._processor_seconds = 0.0
        self._pause_end = float("-inf")
        self._next_pause = PAUSE_SECONDS

    def is_likely(self) -> bool:
        """Return whether the calling thread had to share its core a moment ago."""
        return self._clock() < self._pause_end

    def observe(self, work: Callable[[], None]) -> None:
        """Run the calling thread's part of some work, and compare its processor time with the time that passes.

        Args:
            work: A function that does this part. It does not wait for other threads.
        """
        start, processor_start = self._clock(), self._thread_clock()
        work()
        end = self._clock()
        self._seconds += end - start
        self._processor_seconds += self._thread_clock() - processor_start
        if self._seconds >= WINDOW_SECONDS:
            if self._processor_seconds < MIN_SHARE * self._seconds:
                self._pause_end = end + self._next_pause
                self._next_pause = min(2 * self._next_pause, MAX_PAUSE_SECONDS)
            else:
                self._next_pause = PAUSE_SECONDS
            self._seconds = self._processor_seconds = 0.0
