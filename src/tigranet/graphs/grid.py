"""The pixel grid, as a stencil: no matrix is ever made."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.choices import Boundary as Boundary
from tigranet.graphs.laplacian import Laplacian

Neighbours = Literal[4, 8]
ISOTROPIC = 0.3
"""The weight of diagonal edges for which L looks most alike in all directions: the eigenvalue of a wave of 3 pixels or
longer differs by 0.006 with its direction, where with weight 1 it differs by 0.17 (and with 1/4, the best for long
waves, by 0.027)."""
Vector = tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]
"""Two numbers a node: a direction in the image, or twice that angle."""


class GridLaplacian(Laplacian):
    r"""The normalized Laplacian of a ``height`` x ``width`` grid of pixels.

    A pixel is joined to its 4 nearest neighbours with weight 1 and, for ``neighbours=8`` (the paper's grid), to its 4
    diagonal ones with weight ``diagonal``. Node ``r * width + c`` is the pixel in row r and column c.

    * ``boundary="free"`` is the paper's grid: pixels of the border have fewer neighbours, so the eight
      symmetries of the square are symmetries of the graph but a shift is not.
    * ``boundary="torus"`` joins opposite borders: every integer shift is a symmetry too (reading 18).
      The graph stays simple: along an axis of 1 or 2 pixels there is nothing left to join.

    The sums are grouped as (up + down) + (left + right) and (two opposite corners) + (the other two).
    Floating-point addition commutes, so these groups are the same *bits* when the grid is turned,
    reflected or, on the torus, shifted: ``laplacian(turn(y))`` equals ``turn(laplacian(y))`` exactly.

    >>> laplacian = GridLaplacian(2, 3)
    >>> laplacian(torch.ones(6)).shape
    torch.Size([6])
    >>> laplacian
    GridLaplacian(2, 3, neighbours=8, boundary='free')
    """

    def __init__(
        self, height: int, width: int, neighbours: Neighbours = 8, boundary: Boundary = "free", diagonal: float = 1.0
    ) -> None:
        if height < 1 or width < 1 or height * width < 2:  # an isolated node has no normalized Laplacian
            raise ValueError(f"a grid has rows and columns, and at least 2 pixels, got {height} x {width}")
        check_neighbourhood(neighbours, diagonal)
        if boundary not in ("free", "torus"):
            raise ValueError(f"boundary is 'free' or 'torus', got {boundary!r}")
        self.height, self.width = height, width
        self.neighbours, self.boundary, self.diagonal = neighbours, boundary, diagonal
        self._wrap_rows = boundary == "torus" and height > 2
        self._wrap_columns = boundary == "torus" and width > 2
        degree = self._neighbour_sum(torch.ones(height, width, dtype=torch.float64))
        super().__init__(height * width, degree.rsqrt())

    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        self._check(y)
        s = self._constant_like(y)
        image = y.reshape(*y.shape[:-1], self.height, self.width)
        return (-s * self._neighbour_sum(s * image)).flatten(-2)

    def gradient(self, y: Float[Tensor, "*batch nodes"]) -> Vector:
        r"""The image gradient :math:`(f_x, f_y)`: x along the columns, y down the rows, a pixel the unit of length.

        By Scharr's stencil, the central difference smoothed across by (3, 10, 3) / 16: its direction errs by less
        than a degree for waves of 4 pixels or longer, however they lie. Across a free border the nearest pixel is
        repeated, so a constant has no gradient; on the torus there is no border. Turned by a quarter the answer
        is :math:`(f_y, -f_x)` of the image turned, and the grouping of the sums makes it so bit for bit.
        """
        self._check(y)
        p = self._surround(y.unflatten(-1, (self.height, self.width)), repeat=True)
        north_west, north, north_east = p[..., :-2, :-2], p[..., :-2, 1:-1], p[..., :-2, 2:]
        west, east = p[..., 1:-1, :-2], p[..., 1:-1, 2:]
        south_west, south, south_east = p[..., 2:, :-2], p[..., 2:, 1:-1], p[..., 2:, 2:]
        falling, rising = south_east - north_west, north_east - south_west
        f_x = 10 / 32 * (east - west) + 3 / 32 * (falling + rising)
        f_y = 10 / 32 * (south - north) + 3 / 32 * (falling - rising)
        return f_x.flatten(-2), f_y.flatten(-2)

    def second_gradient(self, y: Float[Tensor, "*batch nodes"]) -> Vector:
        r""":math:`(f_{xx} - f_{yy},\ 2 f_{xy})`, the part of the second derivatives that has an orientation: turned by
        an angle, it turns by twice that angle. The gradient of the gradient.
        """
        return self.twist(self.gradient(y))

    def twist(self, gradient: Vector) -> Vector:
        """:meth:`second_gradient`, where the gradient is at hand."""
        f_x, f_y = gradient
        (f_xx, f_xy), (f_yx, f_yy) = self.gradient(f_x), self.gradient(f_y)
        return (
            f_xx - f_yy,
            f_xy + f_yx,
        )  # the two differ by rounding and at a free border; their sum turns with the image

    def _neighbour_sum(self, image: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch height width"]:
        """:math:`A y`, the adjacency matrix applied to an image."""
        p = self._surround(image)
        up, down, left, right = p[..., :-2, 1:-1], p[..., 2:, 1:-1], p[..., 1:-1, :-2], p[..., 1:-1, 2:]
        cross = (up + down) + (left + right)
        if self.neighbours == 4:
            return cross
        corners = (p[..., :-2, :-2] + p[..., 2:, 2:]) + (p[..., :-2, 2:] + p[..., 2:, :-2])
        return cross + (corners if self.diagonal == 1 else self.diagonal * corners)

    def _surround(self, image: Tensor, repeat: bool = False) -> Tensor:
        """One more pixel on each side: what lies across the border on the torus; on the free grid zero, or the pixel
        at the border repeated."""
        if not (self._wrap_rows or self._wrap_columns or repeat):
            return F.pad(image, (1, 1, 1, 1))
        for axis, wraps in ((-2, self._wrap_rows), (-1, self._wrap_columns)):
            first, last = image.narrow(axis, 0, 1), image.narrow(axis, -1, 1)
            if not wraps:  # F.pad would repeat it too, but the gradient of that is not deterministic on a GPU
                first, last = (last, first) if repeat else (torch.zeros_like(first), torch.zeros_like(first))
            image = torch.cat((last, image, first), dim=axis)
        return image

    def __repr__(self) -> str:
        diagonal = "" if self.diagonal == 1 else f", diagonal={self.diagonal:g}"
        choices = f"neighbours={self.neighbours}, boundary={self.boundary!r}{diagonal}"
        return f"GridLaplacian({self.height}, {self.width}, {choices})"


def check_neighbourhood(neighbours: int, diagonal: float) -> None:
    """Say what is wrong with how pixels are joined, if anything is."""
    if neighbours not in (4, 8):
        raise ValueError(f"neighbours is 4 or 8, got {neighbours!r}")
    if not (math.isfinite(diagonal) and diagonal > 0):
        raise ValueError(f"diagonal is a positive edge weight, got {diagonal}: for none at all use neighbours=4")
