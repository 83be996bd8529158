"""Coarsening of the pixel grid: half the height and width."""

from typing import TYPE_CHECKING

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from tigranet.graphs.coarsening import Coarsening

if TYPE_CHECKING:
    from tigranet.graphs.grid import GridLaplacian


class GridCoarsening(Coarsening):
    """Halve height and width with a low-pass filter that is symmetric about the centre of the image.

    Along an axis of even length, the coarse pixel k is the mean of the pixels 2k - 1 .. 2k + 2 with the weights
    (1, 3, 3, 1) / 8. Along an axis of odd length n, the coarse pixels lie on the pixels 0, 2, .., n - 1 and have the
    weights (1, 2, 1) / 4. Outside a free grid the border pixels are repeated. Both filters are repeated means of two
    neighbours.

    Because of the symmetry, rotating by a quarter turn and then coarsening equals coarsening and then rotating, for all
    sizes. The same holds for reflections, and on the torus for shifts by an even number of pixels along axes of even
    length.

    Args:
        grid: The fine grid.

    Attributes:
        laplacian: The Laplacian of the coarse grid, with the same options as the fine grid.

    Raises:
        ValueError: If the coarse grid would have a single pixel.
    """

    def __init__(self, grid: "GridLaplacian") -> None:
        height, width = -(-grid.height // 2), -(-grid.width // 2)
        if height * width < 2:
            raise ValueError(
                f"expected a grid with a side of at least 3 pixels to coarsen, got {grid.height} x {grid.width}: "
                "use larger images, or an architecture with fewer coarsenings (D)"
            )
        self._grid = grid
        self.laplacian: GridLaplacian = type(grid)(height, width, grid.neighbours, grid.boundary, grid.diagonal)

    def __call__(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch coarse_nodes"]:
        """Halve height and width, see :meth:`Coarsening.__call__`. Half precision is allowed."""
        return self._coarsen(self._images(y)).reshape(*y.shape[:-1], self.laplacian.num_nodes)

    def nodes(self, omega: Bool[Tensor, "*batch nodes"]) -> Bool[Tensor, "*batch coarse_nodes"]:
        """Reduce sets of nodes, see :meth:`Coarsening.nodes`."""
        coarse = self._coarsen(self._images(omega.float())) > 0
        return coarse.reshape(*omega.shape[:-1], self.laplacian.num_nodes)

    def _images(self, y: Tensor) -> Float[Tensor, "batch maps height width"]:
        height, width = self._grid.height, self._grid.width
        if y.ndim == 0 or y.shape[-1] != height * width:
            raise ValueError(f"{self!r} reads {height * width} values in the last axis, got shape {tuple(y.shape)}")
        images = y.unflatten(-1, (height, width))
        return images if images.ndim == 4 else images.reshape(1, -1, height, width)

    def _coarsen(
        self, images: Float[Tensor, "batch maps height width"]
    ) -> Float[Tensor, "batch maps coarse_height coarse_width"]:
        smooth = F.avg_pool2d(F.avg_pool2d(self._grid.pad(images, 1), 2, 1), 2, 1)
        return F.avg_pool2d(smooth, (2 - self._grid.height % 2, 2 - self._grid.width % 2), 2)

    def __repr__(self) -> str:
        coarse = self.laplacian
        return f"GridCoarsening({self._grid.height} x {self._grid.width} to {coarse.height} x {coarse.width})"
