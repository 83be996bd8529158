"""The pixel grid, applied as a stencil. No matrix is built."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tigranet.choices import Boundary as Boundary
from tigranet.graphs.coarsening import Coarsening
from tigranet.graphs.grid_coarsening import GridCoarsening
from tigranet.graphs.laplacian import Laplacian

Neighbours = Literal[4, 8]
"""Number of neighbours of an inner pixel."""
ISOTROPIC = 0.3
"""Weight of the diagonal edges for which L depends least on direction.

With this weight, the eigenvalue of a plane wave of 3 pixels or longer varies by 0.006 with the direction of the wave.
With weight 1 it varies by 0.17, and with 1/4, the best weight for long waves, by 0.027.
"""
Vector = tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]
"""Two components per node, of a vector that rotates with the image or by twice its angle."""


class GridLaplacian(Laplacian):
    r"""The normalized Laplacian of a ``height`` x ``width`` grid of pixels.

    Each pixel is joined to its 4 nearest neighbours with weight 1. With ``neighbours=8`` (the paper's grid) it is also
    joined to its 4 diagonal neighbours with weight ``diagonal``. Node ``r * width + c`` is the pixel in row r and
    column c.

    * ``boundary="free"`` is the paper's grid. Border pixels have fewer neighbours, so the eight symmetries of the
      square are symmetries of the graph, but a shift is not.
    * ``boundary="torus"`` joins opposite borders, so every integer shift is a symmetry too (reading 18). The graph
      stays simple: an axis of 1 or 2 pixels gets no additional edges.

    The sums are grouped as (up + down) + (left + right) and (two opposite corners) + (the other two corners).
    Floating-point addition commutes, so these groups have the same *bits* when the grid is rotated by a quarter turn,
    reflected or, on the torus, shifted: ``laplacian(turn(y))`` equals ``turn(laplacian(y))`` exactly.

    Args:
        height: Number of rows.
        width: Number of columns.
        neighbours: Number of neighbours of an inner pixel, 4 or 8.
        boundary: ``free`` or ``torus``.
        diagonal: Weight of the diagonal edges, used with 8 neighbours only.

    Attributes:
        height: Number of rows.
        width: Number of columns.
        neighbours: Number of neighbours of an inner pixel.
        boundary: ``free`` or ``torus``.
        diagonal: Weight of the diagonal edges.
        num_nodes: Number of pixels.

    Raises:
        ValueError: If the grid has fewer than 2 pixels or an option has an invalid value.

    Example:
        >>> laplacian = GridLaplacian(2, 3)
        >>> laplacian(torch.ones(6)).shape
        torch.Size([6])
        >>> laplacian
        GridLaplacian(2, 3, neighbours=8, boundary='free')
    """

    def __init__(
        self, height: int, width: int, neighbours: Neighbours = 8, boundary: Boundary = "free", diagonal: float = 1.0
    ) -> None:
        if height < 1 or width < 1 or height * width < 2:  # An isolated node has no normalized Laplacian.
            raise ValueError(f"expected a grid of at least 1 row, 1 column and 2 pixels, got {height} x {width}")
        check_grid_options(neighbours, boundary, diagonal)
        self.height, self.width = height, width
        self.neighbours, self.boundary, self.diagonal = neighbours, boundary, diagonal
        self._wrap_rows = boundary == "torus" and height > 2
        self._wrap_columns = boundary == "torus" and width > 2
        degree = self._neighbour_sum(torch.ones(height, width, dtype=torch.float64))
        super().__init__(height * width, degree.rsqrt())

    @property
    def inverse_sqrt_degree(self) -> Float[Tensor, "height width"]:
        """The diagonal of :math:`D^{-1/2}` as an image, in float64 on the CPU."""
        return self._constant

    @property
    def wraps_rows(self) -> bool:
        """Whether edges join the first row to the last."""
        return self._wrap_rows

    @property
    def wraps_columns(self) -> bool:
        """Whether edges join the first column to the last."""
        return self._wrap_columns

    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r"""Compute :math:`(L - I) y`, see :meth:`Laplacian.shifted`."""
        self._check_signal(y)
        s = self._constant_like(y)
        image = y.reshape(*y.shape[:-1], self.height, self.width)
        return (-s * self._neighbour_sum(s * image)).flatten(-2)

    def gradient(self, y: Float[Tensor, "*batch nodes"]) -> Vector:
        r"""Compute the image gradient :math:`(f_x, f_y)`.

        x runs along the columns, y runs down the rows, and a pixel is the unit of length.

        The stencil is Scharr's: the central difference, smoothed in the other direction by (3, 10, 3) / 16. The
        direction of the result is wrong by less than one degree for waves of 4 pixels or longer in any direction. On a
        free grid the border pixels are repeated outside the image, so a constant image has gradient zero. The torus
        has no border. The gradient of an image rotated by a quarter turn is :math:`(f_y, -f_x)`, rotated with the
        image. The grouping of the sums makes this exact bit for bit.

        Args:
            y: Signals on the grid.

        Returns:
            The two components :math:`f_x` and :math:`f_y`.

        Raises:
            ValueError: If the last axis of ``y`` does not have one value per pixel.
            TypeError: If ``y`` is neither float32 nor float64.

        Shape:
            ``(*batch, nodes) -> (*batch, nodes), (*batch, nodes)``
        """
        self._check_signal(y)
        p = self.pad(y.unflatten(-1, (self.height, self.width)), 1)
        north_west, north, north_east = p[..., :-2, :-2], p[..., :-2, 1:-1], p[..., :-2, 2:]
        west, east = p[..., 1:-1, :-2], p[..., 1:-1, 2:]
        south_west, south, south_east = p[..., 2:, :-2], p[..., 2:, 1:-1], p[..., 2:, 2:]
        falling, rising = south_east - north_west, north_east - south_west
        f_x = 10 / 32 * (east - west) + 3 / 32 * (falling + rising)
        f_y = 10 / 32 * (south - north) + 3 / 32 * (falling - rising)
        return f_x.flatten(-2), f_y.flatten(-2)

    def second_gradient(self, y: Float[Tensor, "*batch nodes"]) -> Vector:
        r"""Compute :math:`(f_{xx} - f_{yy},\ 2 f_{xy})`, the part of the second derivatives with an orientation.

        When the image is rotated by an angle, this vector rotates by twice the angle.

        Args:
            y: Signals on the grid.

        Returns:
            The two components.

        Shape:
            ``(*batch, nodes) -> (*batch, nodes), (*batch, nodes)``
        """
        return self.twist(self.gradient(y))

    def twist(self, gradient: Vector) -> Vector:
        """Compute :meth:`second_gradient` from a gradient that is already computed.

        Args:
            gradient: The result of :meth:`gradient`.

        Returns:
            The two components of the second gradient.
        """
        f_x, f_y = gradient
        (f_xx, f_xy), (f_yx, f_yy) = self.gradient(f_x), self.gradient(f_y)
        # f_xy and f_yx differ by rounding and at a free border, but their sum rotates with the image.
        return f_xx - f_yy, f_xy + f_yx

    def pad(
        self, images: Float[Tensor, "*batch height width"], border: int
    ) -> Float[Tensor, "*batch padded_height padded_width"]:
        """Add pixels on each side: from the opposite side on the torus, and copies of the border pixels elsewhere.

        Args:
            images: Images on this grid.
            border: Number of pixels to add on each side.

        Returns:
            The padded images.

        Example:
            >>> GridLaplacian(1, 3).pad(torch.tensor([[1.0, 2.0, 3.0]]), 1)[0]
            tensor([1., 1., 2., 3., 3.])
            >>> GridLaplacian(1, 3, boundary="torus").pad(torch.tensor([[1.0, 2.0, 3.0]]), 2)[0]
            tensor([2., 3., 1., 2., 3., 1., 2.])
        """
        for axis, wraps in ((-2, self._wrap_rows), (-1, self._wrap_columns)):
            images = _wrap(images, axis, border) if wraps else _repeat_border(images, axis, border)
        return images

    def _coarsen(self) -> Coarsening:
        return GridCoarsening(self)

    def _neighbour_sum(self, image: Float[Tensor, "*batch height width"]) -> Float[Tensor, "*batch height width"]:
        """Compute :math:`A y`, the adjacency matrix applied to an image."""
        p = self._pad_with_zeros(image)
        up, down, left, right = p[..., :-2, 1:-1], p[..., 2:, 1:-1], p[..., 1:-1, :-2], p[..., 1:-1, 2:]
        nearest = (up + down) + (left + right)
        if self.neighbours == 4:
            return nearest
        corners = (p[..., :-2, :-2] + p[..., 2:, 2:]) + (p[..., :-2, 2:] + p[..., 2:, :-2])
        return nearest + (corners if self.diagonal == 1 else self.diagonal * corners)

    def _pad_with_zeros(self, image: Tensor) -> Tensor:
        """Add one pixel on each side: from the opposite side on the torus, and zeros elsewhere."""
        if not (self._wrap_rows or self._wrap_columns):
            return F.pad(image, (1, 1, 1, 1))
        for axis, wraps in ((-2, self._wrap_rows), (-1, self._wrap_columns)):
            zeros = torch.zeros_like(image.narrow(axis, 0, 1))
            image = _wrap(image, axis, 1) if wraps else torch.cat((zeros, image, zeros), dim=axis)
        return image

    def __repr__(self) -> str:
        diagonal = "" if self.diagonal == 1 else f", diagonal={self.diagonal:g}"
        options = f"neighbours={self.neighbours}, boundary={self.boundary!r}{diagonal}"
        return f"GridLaplacian({self.height}, {self.width}, {options})"


def _repeat_border(images: Tensor, axis: int, border: int) -> Tensor:
    """Copy the first and the last row or column outwards."""
    # F.pad can repeat the border too, but its gradient is not deterministic on a GPU.
    first, last = images.narrow(axis, 0, 1), images.narrow(axis, -1, 1)
    return torch.cat((*[first] * border, images, *[last] * border), dim=axis)


def _wrap(images: Tensor, axis: int, border: int) -> Tensor:
    """Continue the rows or columns periodically, beyond one period if necessary."""
    size = images.shape[axis]
    periods, rest = divmod(border, size)
    before, after = images.narrow(axis, size - rest, rest), images.narrow(axis, 0, rest)
    return torch.cat((before, *[images] * (2 * periods + 1), after), dim=axis)


def check_grid_options(neighbours: int, boundary: str, diagonal: float) -> None:
    """Check the options of a pixel grid.

    Args:
        neighbours: Number of neighbours of an inner pixel.
        boundary: How the grid ends.
        diagonal: Weight of the diagonal edges.

    Raises:
        ValueError: If one of them is invalid.
    """
    if neighbours not in (4, 8):
        raise ValueError(f"expected neighbours to be 4 or 8, got {neighbours!r}")
    if boundary not in ("free", "torus"):
        raise ValueError(f"expected boundary to be 'free' or 'torus', got {boundary!r}")
    if not (math.isfinite(diagonal) and diagonal > 0):
        raise ValueError(
            f"expected diagonal to be a positive edge weight, got {diagonal}: "
            "for a grid without diagonal edges use neighbours=4"
        )
