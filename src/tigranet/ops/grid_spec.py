"""A pixel grid as one small value, as the fused operators read it."""

from functools import lru_cache
from typing import NamedTuple

from tigranet.graphs.grid import Boundary, GridLaplacian, Neighbours


class GridSpec(NamedTuple):
    """The parameters of a :class:`GridLaplacian`.

    An operator's schema spells these five numbers out as its last arguments
    (:class:`tigranet.ops.custom_op.CustomOp` packs and unpacks them), so that compilers may treat the sizes as
    symbols.
    """

    height: int
    width: int
    neighbours: int
    torus: bool
    diagonal: float

    @classmethod
    def of(cls, laplacian: GridLaplacian) -> "GridSpec":
        """Describe a grid.

        Args:
            laplacian: The Laplacian of the grid.

        Returns:
            Its parameters.
        """
        torus = laplacian.boundary == "torus"
        return cls(laplacian.height, laplacian.width, laplacian.neighbours, torus, float(laplacian.diagonal))

    @property
    def num_nodes(self) -> int:
        """The number of pixels."""
        return self.height * self.width

    @property
    def wraps_rows(self) -> bool:
        """Whether edges join the first row to the last, see :class:`GridLaplacian`."""
        return self.torus and self.height > 2

    @property
    def wraps_columns(self) -> bool:
        """Whether edges join the first column to the last."""
        return self.torus and self.width > 2

    @property
    def laplacian(self) -> GridLaplacian:
        """The Laplacian with these parameters, built once."""
        return _laplacian(self)


@lru_cache(maxsize=64)
def _laplacian(grid: GridSpec) -> GridLaplacian:
    neighbours: Neighbours = 8 if grid.neighbours == 8 else 4
    boundary: Boundary = "torus" if grid.torus else "free"
    return GridLaplacian(grid.height, grid.width, neighbours, boundary, grid.diagonal)
