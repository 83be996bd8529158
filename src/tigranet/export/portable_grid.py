"""The pixel grid as convolutions whose height and width are known only when the network runs."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tigranet.graphs.grid import Boundary

Images = Float[Tensor, "batch maps height width"]
"""Maps as images."""


class Vector(NamedTuple):
    """Two components per pixel, of a vector that rotates with the image or by twice its angle."""

    x: Images
    y: Images


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

    Args:
        options: The options of the grid.
    """

    neighbours: Float[Tensor, "1 1 3 3"]
    along_x: Float[Tensor, "1 1 3 3"]
    along_y: Float[Tensor, "1 1 3 3"]
    even: Float[Tensor, " 4"]
    odd: Float[Tensor, " 4"]

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


class PortableGrid:
    r"""A pixel grid whose height and width may be symbols of an exported graph.

    It computes the same functions as :class:`tigranet.GridLaplacian`, on images instead of vectors of nodes. Every
    sum over neighbours is a convolution of each map with one stencil, and the degrees of the pixels are computed in
    the graph, as the sum of the neighbours of an image of ones. So nothing depends on the size of the images that a
    network was exported with.

    On the torus, an axis of 1 or 2 pixels is not closed. As the length is not known, the borders are multiplied by 1
    or 0, which is computed from the length.

    Args:
        stencils: The stencils, and the options of the grid.
        images: Images on the grid, which give its height, width, dtype and device.
    """

    def __init__(self, stencils: Stencils, images: Images) -> None:
        self.stencils = stencils
        self.height, self.width = images.shape[2:]
        self._wraps = stencils.options.boundary == "torus"
        ones = torch.ones_like(images[:1, :1])
        self._ones = ones
        self._closed = [self._is_closed(axis, images.dtype) for axis in (2, 3)] if self._wraps else []
        self.degree = self.neighbour_sum(ones)
        self.inverse_sqrt_degree = self.degree.rsqrt()

    def neighbour_sum(self, z: Images) -> Images:
        """Compute the sum over the neighbours of each pixel, :math:`A z`.

        Args:
            z: Maps.

        Returns:
            The sums.
        """
        if not self._wraps:
            return self._stencil(z, self.stencils.neighbours, padding=1)
        for axis, closed in zip((2, 3), self._closed, strict=True):
            first, last = z.narrow(axis, 0, 1), z.narrow(axis, -1, 1)
            z = torch.cat((last * closed, z, first * closed), axis)
        return self._stencil(z, self.stencils.neighbours)

    def shifted(self, z: Images) -> Images:
        r"""Compute :math:`(L - I) z`.

        Args:
            z: Maps.

        Returns:
            Maps of the same shape.
        """
        return -self.inverse_sqrt_degree * self.neighbour_sum(self.inverse_sqrt_degree * z)

    def gradient(self, z: Images) -> Vector:
        """Compute the image gradient, see :meth:`tigranet.GridLaplacian.gradient`.

        Args:
            z: Maps.

        Returns:
            The derivatives along the columns and down the rows.
        """
        padded = self.pad(z, 1)
        return Vector(self._stencil(padded, self.stencils.along_x), self._stencil(padded, self.stencils.along_y))

    def twist(self, gradient: Vector) -> Vector:
        """Compute :meth:`tigranet.GridLaplacian.second_gradient` from a gradient.

        Args:
            gradient: The result of :meth:`gradient`.

        Returns:
            The two components of the second gradient.
        """
        of_x, of_y = self.gradient(gradient.x), self.gradient(gradient.y)
        return Vector(of_x.x - of_y.y, of_x.y + of_y.x)

    def product_of_gradients(self, f: Images, g: Images) -> Images:
        """Compute the product of two gradients, see :meth:`tigranet.graphs.laplacian.Laplacian.carre_du_champ`.

        Args:
            f: First maps.
            g: Second maps.

        Returns:
            The product at each pixel.
        """
        fg = f * g
        one_l = self._ones + self.shifted(self._ones)
        return (f * (g + self.shifted(g)) + g * (f + self.shifted(f)) - (fg + self.shifted(fg)) - fg * one_l) / 2

    def pad(self, z: Images, border: int, after: int | None = None) -> Images:
        """Add pixels on each side: copies of the border pixels, or on the torus those of the opposite side.

        Args:
            z: Maps.
            border: Number of pixels to add on each side.
            after: Number of pixels to add below and on the right, if it differs.

        Returns:
            The padded maps.
        """
        after = border if after is None else after
        if not border and not after:
            return z
        if not self._wraps:
            return F.pad(z, (border, after, border, after), mode="replicate")
        for axis, closed in zip((2, 3), self._closed, strict=True):
            z = z.index_select(axis, _positions(z, axis, border, after, closed))
        return z

    def coarsen(self, z: Images) -> Images:
        r"""Halve height and width, see :class:`tigranet.graphs.grid_coarsening.GridCoarsening`.

        The taps at the fine pixels 2k - 1 .. 2k + 2 of the coarse pixel k are (1, 3, 3, 1) / 8 along an axis of even
        length and (1, 2, 1, 0) / 4 along one of odd length. The parity is computed in the graph, so that one
        convolution with stride 2 serves both.

        Args:
            z: Maps.

        Returns:
            Maps on the coarse grid.
        """
        rows, columns = (self._coarsening_taps(axis, z.dtype) for axis in (2, 3))
        taps = (rows[:, None] * columns[None, :])[None, None]
        return self._stencil(self.pad(z, 1, 2), taps, stride=2)

    def coarsen_nodes(self, omega: Bool[Tensor, "batch 1 height width"]) -> Bool[Tensor, "batch 1 coarse_h coarse_w"]:
        """Reduce sets of pixels: a coarse pixel is in the set if one of the fine pixels that it reads is.

        Args:
            omega: Sets of pixels.

        Returns:
            Sets of coarse pixels.
        """
        return self.coarsen(omega.to(self.degree.dtype)) > 0

    def _stencil(self, z: Images, stencil: Tensor, padding: int = 0, stride: int = 1) -> Images:
        """Convolve each map with the same stencil."""
        maps = z.shape[1]
        return F.conv2d(z, stencil.expand(maps, 1, -1, -1), stride=stride, padding=padding, groups=maps)

    def _coarsening_taps(self, axis: int, dtype: torch.dtype) -> Float[Tensor, " 4"]:
        is_odd = (self._length(axis) % 2).to(dtype)
        return is_odd * self.stencils.odd + (1 - is_odd) * self.stencils.even

    def _is_closed(self, axis: int, dtype: torch.dtype) -> Float[Tensor, ""]:
        """Return 1 if edges join the two ends of an axis, and 0 otherwise, as a tensor."""
        return (self._length(axis) > 2).to(dtype)

    def _length(self, axis: int) -> Int[Tensor, ""]:
        """Return the length of an axis as a tensor, which stays symbolic in an exported graph."""
        return torch.full((), self._ones.shape[axis], dtype=torch.int64, device=self._ones.device)


def _positions(z: Images, axis: int, before: int, after: int, closed: Float[Tensor, ""]) -> Int[Tensor, " positions"]:
    """Return the positions along an axis that padding reads: from the opposite side, or copies of the border."""
    length = z.shape[axis]
    positions = torch.arange(-before, length + after, device=z.device)
    return torch.where(closed > 0, positions % length, positions.clamp(0, length - 1))
