"""The pixel grid as convolutions whose height and width are known only when the network runs."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.fx
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tigranet.graphs.grid import Boundary

Images = Float[Tensor, "batch maps height width"]
"""Maps as images."""
OtherMaps = Float[Tensor, "batch out_maps height width"]
"""Other maps of the same images."""
ResizedImages = Float[Tensor, "batch maps new_height new_width"]
"""The same maps as images of another size."""


class Vector(NamedTuple):
    """Two components per pixel, of a vector that rotates with the image or by twice its angle."""

    x: Images
    """Component along the columns."""
    y: Images
    """Component down the rows."""


@dataclass(frozen=True)
class GridOptions:
    """The options of a pixel grid, see :class:`tigranet.GridLaplacian`."""

    neighbours: int
    boundary: Boundary
    diagonal: float


class Stencils(nn.Module):
    r"""The stencils of the grid as constants of a network.

    * ``neighbours`` sums the neighbours of a pixel: weight 1 along the axes, ``diagonal`` across the corners.
    * ``along_x`` and ``along_y`` are Scharr's derivatives: the central difference, smoothed in the other direction by
      (3, 10, 3) / 16.
    * ``even`` and ``odd`` are the taps of a coarsening along an axis of even or odd length.
    * ``inverse_sqrt_degree``, ``sqrt_degree`` and ``inverse_degree`` are functions of the degree d of a pixel with a
      nearest and b diagonal neighbours, in entry 5 a + b. They are tables so that they are rounded as in
      :class:`tigranet.GridLaplacian`, which computes them in double precision.

    Args:
        options: The options of the grid.
    """

    neighbours: Float[Tensor, "1 1 3 3"]
    along_x: Float[Tensor, "1 1 3 3"]
    along_y: Float[Tensor, "1 1 3 3"]
    even: Float[Tensor, " 4"]
    odd: Float[Tensor, " 4"]
    inverse_sqrt_degree: Float[Tensor, " 25"]
    sqrt_degree: Float[Tensor, " 25"]
    inverse_degree: Float[Tensor, " 25"]

    def __init__(self, options: GridOptions) -> None:
        super().__init__()
        self.options = options
        corner = options.diagonal if options.neighbours == 8 else 0.0
        smooth = torch.tensor([3.0, 10.0, 3.0]) / 16
        difference = torch.tensor([-1.0, 0.0, 1.0]) / 2
        self.register_buffer(
            "neighbours", torch.tensor([[corner, 1, corner], [1, 0, 1], [corner, 1, corner]])[None, None]
        )
        self.register_buffer("along_x", torch.outer(smooth, difference)[None, None])
        self.register_buffer("along_y", torch.outer(difference, smooth)[None, None])
        self.register_buffer("even", torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8)
        self.register_buffer("odd", torch.tensor([1.0, 2.0, 1.0, 0.0]) / 4)
        counts = torch.arange(5, dtype=torch.float64)
        degree = (counts[:, None] + corner * counts).flatten()
        degree[0] = 1.0  # No pixel of a grid is without neighbours.
        self.register_buffer("inverse_sqrt_degree", degree.rsqrt().float())
        self.register_buffer("sqrt_degree", degree.sqrt().float())
        self.register_buffer("inverse_degree", (1 / degree).float())


class PortableGrid:
    r"""A pixel grid whose height and width may be symbols of an exported graph.

    It computes the same functions as :class:`tigranet.GridLaplacian`, on images instead of vectors of nodes. Every
    sum over neighbours is a convolution of each map with one stencil, and the degrees of the pixels are computed in
    the graph, from the sums of the neighbours of an image of ones. So nothing depends on the size of the images that a
    network was exported with.

    On the torus, an axis of 1 or 2 pixels is not closed. As the length is not known, the borders are multiplied by 1
    or 0, which is computed from the length.

    Args:
        stencils: The stencils, and the options of the grid.
        images: Images on the grid, which give its height and width.
    """

    def __init__(self, stencils: Stencils, images: Images) -> None:
        self.stencils = stencils
        self._wraps = stencils.options.boundary == "torus"
        self._ones = torch.ones_like(images[:1, :1])
        self._axes = (self._ones[0, 0, :, 0], self._ones[0, 0, 0, :])
        self._is_closed = [(axis.sum() > 2).float() for axis in self._axes] if self._wraps else []
        nearest, corners = self._neighbour_parts(self._ones)
        kinds = (5 * nearest + corners).long()
        self.inverse_sqrt_degree = torch.take(stencils.inverse_sqrt_degree, kinds)
        self.sqrt_degree = torch.take(stencils.sqrt_degree, kinds)
        self.inverse_degree = torch.take(stencils.inverse_degree, kinds)

    def neighbour_sum(self, z: Images, sign: int = 1) -> Images:
        """Compute the sum over the neighbours of each pixel, :math:`A z`.

        Args:
            z: Maps.
            sign: 1, or -1 for :math:`-A z`.

        Returns:
            The sums.
        """
        stencil = sign * self.stencils.neighbours
        if not self._wraps:
            return convolve_each_map(z, stencil, padding=1)
        return convolve_each_map(self._pad_with_zeros(z), stencil)

    def symmetric_neighbour_sum(self, z: Images) -> Images:
        """Compute :math:`A z` so that a quarter turn of the image changes no bit.

        A convolution adds in an order that a rotation of the image changes, and the rounding with it. Here the sums
        are grouped as in :class:`tigranet.GridLaplacian`, with the same result in every bit. This is slower, and only
        worth it in front of a pooling layer, where rounding can decide which of two pixels is kept.

        Args:
            z: Maps.

        Returns:
            The sums.
        """
        nearest, corners = self._neighbour_parts(z)
        options = self.stencils.options
        return nearest if options.neighbours == 4 else nearest + options.diagonal * corners

    def shifted(self, z: Images) -> Images:
        r"""Compute :math:`(L - I) z`.

        Args:
            z: Maps.

        Returns:
            Maps of the same shape.
        """
        return self.inverse_sqrt_degree * self.neighbour_sum(self.inverse_sqrt_degree * z, -1)

    def symmetric_shifted(self, z: Images) -> Images:
        r"""Compute :math:`(L - I) z` so that a quarter turn of the image changes no bit.

        Args:
            z: Maps.

        Returns:
            Maps of the same shape.
        """
        return -self.inverse_sqrt_degree * self.symmetric_neighbour_sum(self.inverse_sqrt_degree * z)

    def gradient(self, z: Images) -> Vector:
        """Compute the image gradient, see :meth:`tigranet.GridLaplacian.gradient`.

        Args:
            z: Maps.

        Returns:
            The derivatives along the columns and down the rows.
        """
        padded = self.pad(z, 1)
        return Vector(
            convolve_each_map(padded, self.stencils.along_x), convolve_each_map(padded, self.stencils.along_y)
        )

    def twist(self, gradient: Vector) -> Vector:
        """Compute :meth:`tigranet.GridLaplacian.second_gradient` from a gradient.

        Args:
            gradient: The result of :meth:`gradient`.

        Returns:
            The two components of the second gradient.
        """
        x, y = self.pad(gradient.x, 1), self.pad(gradient.y, 1)
        along_x, along_y = self.stencils.along_x, self.stencils.along_y
        return Vector(
            convolve_each_map(x, along_x) + convolve_each_map(y, -along_y),
            convolve_each_map(x, along_y) + convolve_each_map(y, along_x),
        )

    def product_of_gradients(self, f: Images, g: Images) -> Images:
        """Compute the product of two gradients, see :meth:`tigranet.graphs.laplacian.Laplacian.carre_du_champ`.

        Args:
            f: First maps.
            g: Second maps.

        Returns:
            The product at each pixel.
        """
        fg = f * g
        l_of_ones = self._ones + self.shifted(self._ones)
        return (f * (g + self.shifted(g)) + g * (f + self.shifted(f)) - (fg + self.shifted(fg)) - fg * l_of_ones) / 2

    def pad(self, z: Images, before: int, after: int | None = None) -> ResizedImages:
        """Add pixels on each side: copies of the border pixels, or on the torus those of the opposite side.

        Args:
            z: Maps.
            before: Number of pixels to add above and on the left.
            after: Number of pixels to add below and on the right. The default is ``before``.

        Returns:
            The padded maps.
        """
        after = before if after is None else after
        if not before and not after:
            return z
        if not self._wraps:
            return F.pad(z, (before, after, before, after), mode="replicate")
        for dimension, axis, is_closed in zip((2, 3), self._axes, self._is_closed, strict=True):
            z = z.index_select(dimension, _padded_positions(axis, before, after, is_closed))
        return z

    def coarsen(self, z: Images) -> ResizedImages:
        r"""Halve height and width, see :class:`tigranet.graphs.grid_coarsening.GridCoarsening`.

        The taps at the fine pixels 2k - 1 .. 2k + 2 of the coarse pixel k are (1, 3, 3, 1) / 8 along an axis of even
        length and (1, 2, 1, 0) / 4 along one of odd length. The parity is computed in the graph, so that one
        convolution with stride 2 serves both.

        Args:
            z: Maps.

        Returns:
            Maps on the coarse grid.
        """
        rows, columns = (self._coarsening_taps(axis) for axis in self._axes)
        taps = rows.reshape(1, 1, 4, 1) * columns.reshape(1, 1, 1, 4)
        return convolve_each_map(self.pad(z, 1, 2), taps, stride=2)

    def coarsen_nodes(self, omega: Bool[Tensor, "batch 1 height width"]) -> Bool[Tensor, "batch 1 coarse_h coarse_w"]:
        """Reduce sets of pixels: a coarse pixel is in the set if one of the fine pixels that it reads is.

        Args:
            omega: Sets of pixels.

        Returns:
            Sets of coarse pixels.
        """
        return self.coarsen(omega.float()) > 0

    def _neighbour_parts(self, z: Images) -> tuple[Images, Images]:
        """Compute the sum of the 4 nearest neighbours and that of the 4 diagonal ones."""
        p = self._pad_with_zeros(z)
        up, down, left, right = p[:, :, :-2, 1:-1], p[:, :, 2:, 1:-1], p[:, :, 1:-1, :-2], p[:, :, 1:-1, 2:]
        corners = (p[:, :, :-2, :-2] + p[:, :, 2:, 2:]) + (p[:, :, :-2, 2:] + p[:, :, 2:, :-2])
        return (up + down) + (left + right), corners

    def _pad_with_zeros(self, z: Images) -> ResizedImages:
        """Add one pixel on each side: from the opposite side along a closed axis, and zeros elsewhere."""
        if not self._wraps:
            return F.pad(z, (1, 1, 1, 1))
        rows, columns = self._is_closed
        z = torch.cat((z[:, :, -1:] * rows, z, z[:, :, :1] * rows), dim=2)
        return torch.cat((z[:, :, :, -1:] * columns, z, z[:, :, :, :1] * columns), dim=3)

    def _coarsening_taps(self, axis: Float[Tensor, " length"]) -> Float[Tensor, " 4"]:
        is_odd = axis.sum() % 2
        return is_odd * self.stencils.odd + (1 - is_odd) * self.stencils.even


@torch.fx.wrap  # One operation of the exported graph: the number of groups is a constant of the network.
def convolve_each_map(
    z: Images, stencil: Float[Tensor, "1 1 rows columns"], padding: int = 0, stride: int = 1
) -> ResizedImages:
    """Convolve each map with the same stencil.

    Args:
        z: Maps.
        stencil: The stencil.
        padding: Number of zeros to add on each side.
        stride: Distance between the pixels of the result.

    Returns:
        The filtered maps.
    """
    maps = z.shape[1]
    return F.conv2d(z, stencil.expand(maps, 1, -1, -1), stride=stride, padding=padding, groups=maps)


def positions(axis: Float[Tensor, " length"]) -> Float[Tensor, " length"]:
    """Return 0, 1, 2, ... along an axis.

    Args:
        axis: Ones, one per pixel of the axis.

    Returns:
        The positions of the pixels.
    """
    return axis.cumsum(0) - 1


def _padded_positions(
    axis: Float[Tensor, " length"], before: int, after: int, is_closed: Float[Tensor, ""]
) -> Int[Tensor, " padded_length"]:
    """Return the positions that padding reads: those on the opposite side of a closed axis, or those at the border."""
    length = axis.sum()
    sources = positions(F.pad(axis, (before, after), value=1.0)) - before
    inside = torch.minimum(sources.clamp(min=0.0), length - 1)
    return (is_closed * (sources % length) + (1 - is_closed) * inside).long()
