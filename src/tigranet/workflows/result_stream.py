"""Results for many images that are computed one after the other, with what a table of them needs to know first."""

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class ResultStream(Iterator[T], Generic[T]):
    """An iterator over results of a network.

    Args:
        class_names: Names of the classes of the network, for the columns of a table.
        results: The results.

    Attributes:
        class_names: The names.
    """

    def __init__(self, class_names: tuple[str, ...], results: Iterator[T]) -> None:
        self.class_names, self._results = class_names, results

    def __next__(self) -> T:
        return next(self._results)

    def close(self) -> None:
        """Stop computing, and delete files that are not complete, as the ``close`` of a generator does."""
        if isinstance(self._results, Generator):
            self._results.close()
