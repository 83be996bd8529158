"""The spectral convolutions SC and MC in operations that every exporter knows."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.export.portable_grid import Images, OtherMaps, PortableGrid
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise


class PortableSpectralConv(nn.Module):
    r"""The layer :class:`tigranet.SpectralConv`: mix the maps, compute powers of L of the mixture, and combine them.

    A pooling layer follows, whose choice between two pixels may depend on the last bit. All sums are therefore in the
    order of :func:`tigranet.ops.convolution`, and the result is the same in every bit.

    Args:
        layer: The layer to export.
    """

    beta: Float[Tensor, "1 in_maps 1 1"]
    alpha: Float[Tensor, "coefficients 1 out_maps 1 1"]

    def __init__(self, layer: SpectralConv) -> None:
        super().__init__()
        self.in_maps = layer.in_maps
        self.register_buffer("beta", layer.beta.detach()[None, :, None, None])
        self.register_buffer("alpha", layer.alpha.detach().T.contiguous()[:, None, :, None, None])
        self.degree = layer.degree

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Filter maps.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The filtered maps.
        """
        weighted = y * self.beta
        power = weighted[:, :1]
        for k in range(1, self.in_maps):
            power = power + weighted[:, k : k + 1]
        z = power * self.alpha[0]
        for m in range(1, self.degree + 1):
            power = power + grid.symmetric_shifted(power)
            z = z + power * self.alpha[m]
        return z


class PortableMixedConv(nn.Module):
    r"""The layer :class:`tigranet.MixedConv` in evaluation mode: filters, standardisation, bias and ReLU.

    The known standard deviations become part of the filters, and the known means part of the bias.

    Args:
        layer: The layer to export.
    """

    weight: Float[Tensor, "out_maps coefficients 1 1"]
    bias: Float[Tensor, "1 out_maps 1 1"]

    def __init__(self, layer: MixedConv) -> None:
        super().__init__()
        self.degree, self.out_maps = layer.degree, layer.out_maps
        self.basis_first = layer.in_maps < layer.out_maps
        gain, offset = standardising_affine(layer.standardise)
        alpha = layer.alpha.detach() * gain[:, None, None]
        if self.basis_first:
            self.register_buffer("weight", alpha.transpose(1, 2).flatten(1)[:, :, None, None].contiguous())
        else:
            self.chebyshev_sum = PortableChebyshevSum(alpha.unbind(2))
        self.register_buffer("bias", (layer.bias.detach().flatten() + offset)[None, :, None, None])

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
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
            z = self.chebyshev_sum(y, grid)
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


class PortableChebyshevSum(nn.Module):
    r"""Mix maps to :math:`u_0, \dots, u_M`, and compute :math:`\sum_m T_m(L - I)\, u_m`.

    Clenshaw's recurrence is applied to :math:`c_m = \sigma_m D^{1/2} b_m` instead of :math:`b_m`, with the signs
    :math:`\sigma_m = -\sigma_{m+2}` = +, +, -, -, +, +, ...:

    .. math:: b_m = u_m + 2 (L - I)\, b_{m+1} - b_{m+2}, \qquad
        c_m = \sigma_m D^{1/2} u_m - \sigma_m \sigma_{m+1}\, 2 A D^{-1} c_{m+1} + c_{m+2} .

    Each step then needs one product with the degrees instead of two, and only additions, which runtimes fuse with a
    convolution.

    Args:
        weights: One matrix per order, (out_maps, in_maps).
    """

    weights: Float[Tensor, "orders out_maps in_maps 1 1"]

    def __init__(self, weights: Sequence[Float[Tensor, "out_maps in_maps"]]) -> None:
        super().__init__()
        self.degree = len(weights) - 1
        self.signs = [1 if (self.degree - order) % 4 < 2 else -1 for order in range(self.degree + 1)]
        signed = [sign * weight for sign, weight in zip(self.signs, weights, strict=True)]
        self.register_buffer("weights", torch.stack(signed)[..., None, None])

    def forward(self, y: Images, grid: PortableGrid) -> OtherMaps:
        """Compute the sum.

        Args:
            y: Maps.
            grid: The grid.

        Returns:
            The output maps.
        """
        if not self.degree:
            return F.conv2d(y, self.weights[0])
        scaled = y * grid.sqrt_degree
        step = 2 * grid.inverse_degree
        u = F.conv2d(scaled, self.weights.flatten(0, 1)).split(self.weights.shape[1], dim=1)
        c, c_next = u[self.degree], None
        for order in range(self.degree - 1, -1, -1):
            sign = -self.signs[order] * self.signs[order + 1]
            neighbours = grid.neighbour_sum(c * (step if order else grid.inverse_degree), sign)
            mixture = u[order]
            following = neighbours + (mixture if c_next is None else mixture + c_next)
            c, c_next = following, c
        return c * (self.signs[0] * grid.inverse_sqrt_degree)
