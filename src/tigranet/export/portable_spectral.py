"""The spectral convolutions SC and MC in operations that every exporter knows."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, PortableGrid
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise


class PortableSpectralConv(nn.Module):
    r"""The layer :class:`tigranet.SpectralConv`: mix the maps, compute powers of L of the mixture, and combine them.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: SpectralConv) -> None:
        super().__init__()
        self.degree = layer.degree
        self.register_buffer("beta", layer.beta.detach()[None, :, None, None])
        self.register_buffer("alpha", layer.alpha.detach()[:, :, None, None])

    def forward(self, y: Images, grid: PortableGrid) -> Images:
        """Filter maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The filtered maps.
        """
        powers = [F.conv2d(y, self.beta)]
        for _ in range(self.degree):
            powers.append(powers[-1] + grid.shifted(powers[-1]))
        return F.conv2d(torch.cat(powers, dim=1), self.alpha)


class PortableMixedConv(nn.Module):
    r"""The layer :class:`tigranet.MixedConv` in evaluation mode: filters, standardisation, bias and ReLU.

    The known standard deviations become part of the filters, and the known means part of the bias.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: MixedConv) -> None:
        super().__init__()
        self.degree, self.out_maps = layer.degree, layer.out_maps
        self.basis_first = layer.in_maps < layer.out_maps
        gain, offset = standardising_affine(layer.standardise)
        alpha = layer.alpha.detach() * gain[:, None, None]
        weight = alpha.transpose(1, 2).flatten(1) if self.basis_first else alpha.permute(2, 0, 1).flatten(0, 1)
        self.register_buffer("weight", weight[:, :, None, None].contiguous())
        self.register_buffer("bias", (layer.bias.detach().flatten() + offset)[None, :, None, None])

    def forward(self, y: Images, grid: PortableGrid) -> Images:
        """Filter, standardise and rectify maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The output maps.
        """
        if self.basis_first:
            z = F.conv2d(torch.cat(chebyshev(y, grid, self.degree), dim=1), self.weight)
        else:
            z = mixed_chebyshev_sum(self.weight, y, grid, self.degree)
        return F.relu(z + self.bias)


def standardising_affine(layer: Standardise) -> tuple[Float[Tensor, " maps"], Float[Tensor, " maps"]]:
    r"""Write the standardisation by known moments as :math:`x \mapsto g x + o`.

    Args:
        layer: The standardisation.

    Returns:
        The factor g and the term o of each map.
    """
    gain = (layer.variance.double() + layer.eps).rsqrt()
    return gain.to(layer.mean.dtype), (-layer.mean.double() * gain).to(layer.mean.dtype)


def chebyshev(y: Images, grid: PortableGrid, order: int) -> list[Images]:
    r"""Compute :math:`T_k(L - I)\, y` for k = 0 .. ``order``.

    Args:
        y: Maps.
        grid: The grid.
        order: Largest order.

    Returns:
        One batch of maps per order.
    """
    terms = [y]
    if order:
        terms.append(grid.shifted(y))
    for _ in range(order - 1):
        terms.append(2 * grid.shifted(terms[-1]) - terms[-2])
    return terms


def mixed_chebyshev_sum(weight: Tensor, y: Images, grid: PortableGrid, degree: int) -> Images:
    r"""Mix maps to :math:`u_0, \dots, u_M`, M = ``degree``, and compute :math:`\sum_m T_m(L - I)\, u_m`.

    Clenshaw's recurrence is applied to :math:`D^{1/2} b_m` instead of :math:`b_m`:

    .. math:: b_m = u_m + 2 (L - I) b_{m+1} - b_{m+2}, \qquad
        D^{1/2} b_m = D^{1/2} u_m - 2 A D^{-1} (D^{1/2} b_{m+1}) - D^{1/2} b_{m+2},

    so that each step needs one product with the degrees instead of two.

    Args:
        weight: The weights of all maps of :math:`u_0`, then of :math:`u_1`, and so on.
        y: Maps.
        grid: The grid.
        degree: The highest order M.

    Returns:
        The sums.
    """
    if not degree:
        return F.conv2d(y, weight)
    u = F.conv2d(y / grid.inverse_sqrt_degree, weight).chunk(degree + 1, dim=1)
    step = -1 / grid.degree
    b = u[-1]
    b_next: Tensor | None = None
    for u_m in reversed(u[1:-1]):
        rest = u_m if b_next is None else u_m - b_next
        b, b_next = grid.neighbour_sum(b * (2 * step)) + rest, b
    rest = u[0] if b_next is None else u[0] - b_next
    return grid.inverse_sqrt_degree * (grid.neighbour_sum(b * step) + rest)
