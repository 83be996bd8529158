"""A bounded cache of pixel grids, one per image size."""

import threading
from typing import Any

import torch

from tigranet.graphs.grid import Boundary, GridLaplacian, Neighbours, check_grid_options

MAX_GRIDS = 8
"""Number of image sizes that one cache keeps by default."""


class GridCache:
    """The grids of the most recently used image sizes, for one choice of grid options.

    When the cache is full, the least recently used grid is dropped. Several threads may use one cache at the same
    time; they get the same grid for the same size. A copy of a cache (:func:`copy.copy`, :func:`copy.deepcopy` or
    pickle) has the same options and starts empty.

    Args:
        neighbours: Number of neighbours of an inner pixel, 4 or 8.
        boundary: ``free`` or ``torus``.
        diagonal: Weight of the diagonal edges, used with 8 neighbours only.
        max_grids: Number of grids that are kept.

    Raises:
        ValueError: If an option has an invalid value.

    Example:
        >>> grids = GridCache(max_grids=2)
        >>> grids.get(28, 28) is grids.get(28, 28)
        True
        >>> for size in (5, 6, 7):
        ...     _ = grids.get(size, size)
        >>> grids.sizes
        [(6, 6), (7, 7)]
    """

    def __init__(
        self,
        neighbours: Neighbours = 8,
        boundary: Boundary = "free",
        diagonal: float = 1.0,
        max_grids: int = MAX_GRIDS,
    ) -> None:
        check_grid_options(neighbours, boundary, diagonal)
        if max_grids < 1:
            raise ValueError(f"expected max_grids to be at least 1, got {max_grids}")
        self.neighbours, self.boundary, self.diagonal = neighbours, boundary, diagonal
        self.max_grids = max_grids
        self._grids: dict[tuple[int, int], GridLaplacian] = {}  # The least recently used grid comes first.
        self._lock = threading.Lock()

    def get(self, height: int, width: int) -> GridLaplacian:
        """Return the grid of a size, and build it if it is not in the cache.

        While a compiler traces the call, the cache is read but not changed.

        Args:
            height: Number of rows.
            width: Number of columns.

        Returns:
            The grid.

        Raises:
            ValueError: If the grid has fewer than 2 pixels.
        """
        size = (height, width)
        if torch.compiler.is_compiling():  # A compiler can neither trace a lock nor undo a change of the cache.
            return self._grids.get(size) or self._build(height, width)
        with self._lock:
            grid = self._grids.pop(size, None) or self._build(height, width)
            self._grids[size] = grid
            if len(self._grids) > self.max_grids:
                del self._grids[next(iter(self._grids))]
        return grid

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The sizes in the cache, from the least to the most recently used."""
        with self._lock:
            return list(self._grids)

    def _build(self, height: int, width: int) -> GridLaplacian:
        return GridLaplacian(height, width, self.neighbours, self.boundary, self.diagonal)

    def __reduce__(self) -> tuple[Any, ...]:
        # A lock can be neither copied nor pickled, and a grid is cheap to build again.
        return GridCache, (self.neighbours, self.boundary, self.diagonal, self.max_grids)

    def __repr__(self) -> str:
        options = f"neighbours={self.neighbours}, boundary={self.boundary!r}, diagonal={self.diagonal:g}"
        return f"GridCache({options}, max_grids={self.max_grids})"
