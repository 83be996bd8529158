"""Convolutions with rotated copies of learned filters."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.circular_harmonics import basis_size, circular_harmonics
from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.orientation_norm import OrientationNorm
from tigranet.matrix_precision import convolutions_as_products
from tigranet.ops import group_convolution
from tigranet.ops.dispatch import needs_gradient
from tigranet.ops.group_convolution import kernels_pay, rotated_filters
from tigranet.ops.orientation_frequencies import coefficients
from tigranet.torch_compat import in_function_transform, is_observed, knows_memory_formats, missing_for_dispatch


class SteerableConv(nn.Module):
    r"""The base class of convolutions whose filters are learned sums of circular harmonics, rotated to N orientations.

    A *feature* is a function of position and orientation: N maps, one per orientation :math:`\theta_j = 2 \pi j / N`.
    When the image is rotated by :math:`\theta_k`, the maps rotate with it, and orientation j becomes j + k. This is
    exact for quarter turns. For other angles it is as accurate as the filters are smooth.

    The filters that lead to orientation j are those that lead to orientation 0, rotated by :math:`\theta_j`. See
    :mod:`tigranet.circular_harmonics` for the basis :math:`\psi`, whose rotation costs nothing.

    Outside a free grid the border pixels are repeated, so that a plain background stays plain. The torus has no border.
    The layer needs a pixel grid, because other graphs have no directions.

    Maps are ordered (orientation, feature): map ``j * features + c`` is orientation j of feature c.

    Args:
        in_maps: Number of input maps: N per feature, or one per channel of an image without orientations.
        in_orientations: Number of orientations of the input: N, or 1.
        out_features: Number of output features.
        orientations: Number N of orientations, a multiple of 4.
        size: Side length of the filters in pixels, odd.

    Raises:
        ValueError: If a number is invalid.
    """

    basis: Float[Tensor, "orientations basis pixels"]

    def __init__(self, in_maps: int, in_orientations: int, out_features: int, orientations: int, size: int) -> None:
        super().__init__()
        if orientations < 4 or orientations % 4:
            raise ValueError(f"expected a number of orientations that is a multiple of 4, got {orientations}")
        if in_maps < 1 or in_maps % in_orientations or out_features < 1:
            raise ValueError(
                f"expected at least 1 output feature, and {in_orientations} input maps per feature, "
                f"got {out_features} and {in_maps} input maps"
            )
        self.in_maps, self.in_orientations, self.orientations = in_maps, in_orientations, orientations
        self.out_features, self.out_maps, self.size = out_features, orientations * out_features, size
        in_features = in_maps // in_orientations
        self.weight = nn.Parameter(torch.empty(out_features, in_features, in_orientations, basis_size(size)))
        basis = torch.from_numpy(circular_harmonics(size, orientations)).flatten(2)
        self.register_buffer("basis", basis.to(self.weight.dtype), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights so that each map keeps its mean square through a ReLU and this layer."""
        if not self.weight.is_meta:  # there, PyTorch would import its decompositions, which takes a second
            nn.init.normal_(self.weight, std=math.sqrt(2 / self.weight[0].numel()))

    def filters(self) -> Float[Tensor, "out_maps in_maps size size"]:
        r"""Compute the filters from every input map to every output map.

        Returns:
            The filter from orientation i to orientation j: the basis, rotated by :math:`\theta_j` and weighted by the
            entry j - i of the weights.
        """
        with torch.autocast(self.weight.device.type, enabled=False):
            return rotated_filters(self.weight, self.basis)

    def _current_filters(self, dtype: torch.dtype) -> Float[Tensor, "out_maps in_maps size size"]:
        """Return the filters, stored as a convolution reads them."""
        if not self._is_constant():
            return _channels_last(self.filters())
        return self._stored(f"filters in {dtype}", lambda: _channels_last(self.filters().to(dtype)))

    def _current_coefficients(self) -> Float[Tensor, " numbers"] | None:
        """Return the coefficients of the weights, or None where these may have gradients."""
        if not self._is_constant():
            return None
        return self._stored("coefficients", lambda: coefficients(self.weight, self.size))

    def _is_constant(self) -> bool:
        """Return whether numbers that are computed from the weights can be stored, so that they are computed once."""
        return not (needs_gradient(self.weight) or self.weight.device.type != "cpu" or _is_transformed(self.weight))

    def _stored(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Return what was computed from these weights before, or compute it."""
        with torch.inference_mode(False), torch.no_grad():  # it may be part of a graph later
            numbers = _stored_numbers.get(self)
            if numbers is None or not (
                _same_numbers(numbers.weight, self.weight) and _same_numbers(numbers.basis, self.basis)
            ):
                numbers = _StoredNumbers(self.weight.detach().clone(), self.basis.clone(), {})
                _stored_numbers[self] = numbers
            if name not in numbers.results:
                numbers.results[name] = compute()
            return numbers.results[name]

    def forward(
        self,
        y: Float[Tensor, "batch in_maps nodes"],
        laplacian: Laplacian,
        omega: Bool[Tensor, "batch 1 nodes"] | None = None,
        norm: OrientationNorm | None = None,
    ) -> Float[Tensor, "batch out_maps nodes"]:
        """Convolve maps with the filters.

        Args:
            y: Maps.
            laplacian: The grid.
            omega: Nodes of interest; the result is zero elsewhere. None for all nodes.
            norm: A normalisation that is applied to the maps first, in the same pass that adds a border to them.

        Returns:
            The output maps, stored pixel by pixel (channels last), which is the fastest order for convolutions.

        Raises:
            ValueError: If ``y`` is not (batch, in_maps, nodes).
            TypeError: If ``laplacian`` is not that of a grid.
        """
        if y.ndim != 3 or y.shape[1] != self.in_maps:
            raise ValueError(f"{self!r} reads signals (batch, {self.in_maps}, nodes), got shape {tuple(y.shape)}")
        if not isinstance(laplacian, GridLaplacian):
            raise TypeError(
                f"{self!r} needs a pixel grid, because {laplacian!r} has no directions: "
                "use MixedConv and GradientProduct, MC and GP in the notation, on other graphs"
            )
        border, sides = self.size // 2, (laplacian.height, laplacian.width)
        if norm is None:
            padded = laplacian.pad(y.unflatten(2, sides), border)
        else:
            padded = norm(y, laplacian, border).unflatten(2, [side + 2 * border for side in sides])
        if kernels_pay(padded, self.weight, self.basis):
            z = group_convolution(padded, self.weight, self.basis, self._current_coefficients())
        elif y.device.type == "cpu":
            # Under autocast a convolution returns half precision, which the kernels for CPUs do not read.
            dtype = _autocast_type(y)
            z = F.conv2d(_channels_last(padded.to(dtype)), self._current_filters(dtype)).to(y.dtype)
        else:
            with convolutions_as_products() if y.device.type == "cuda" else nullcontext():
                z = F.conv2d(_channels_last(padded), self._current_filters(y.dtype))
        z = _channels_last(z).flatten(2)
        return z if omega is None else z * omega

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.in_maps}, {self.out_features}, orientations={self.orientations}, size={self.size}"


def _channels_last(x: Float[Tensor, "n channels height width"]) -> Float[Tensor, "n channels height width"]:
    return x.contiguous(memory_format=torch.channels_last) if knows_memory_formats() else x


def _autocast_type(y: Tensor) -> torch.dtype:
    """Return the type in which a convolution on the CPU computes."""
    half = torch.is_autocast_enabled("cpu") and y.dtype == torch.float32
    return torch.get_autocast_dtype("cpu") if half else y.dtype


class _StoredNumbers(NamedTuple):
    """What was computed from the weights of a layer."""

    weight: Tensor
    basis: Tensor
    results: dict[str, Tensor]


_stored_numbers: WeakKeyDictionary[SteerableConv, _StoredNumbers] = WeakKeyDictionary()
"""The stored numbers of layers in use. Copies of a layer start without."""


def _is_transformed(weight: Tensor) -> bool:
    """Return whether a compiler, a tracer or a functorch transform sees other numbers than those of the tensor."""
    return missing_for_dispatch() is not None or in_function_transform() or is_observed([weight])


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    """Compare tensors. Unlike their version counters, this also notices changes through ``weight.data``."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


class LiftingConv(SteerableConv):
    r"""From maps without orientation, such as an image, to features with N orientations.

    .. math:: z_{o,j} = \sum_{a} \sum_{b} w_{o,a,b}\, (R_{\theta_j} \psi_b) * y_a .

    See :class:`SteerableConv`.

    Args:
        in_maps: Number of input maps.
        out_features: Number of output features.
        orientations: Number N of orientations, a multiple of 4.
        size: Side length of the filters in pixels, odd.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, orientations * out_features, nodes).

    Example:
        >>> LiftingConv(1, 3, orientations=8, size=5)(torch.rand(2, 1, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 24, 20])
    """

    def __init__(self, in_maps: int, out_features: int, orientations: int, size: int) -> None:
        super().__init__(in_maps, 1, out_features, orientations, size)


class GroupConv(SteerableConv):
    r"""From features to features: a convolution over positions and orientations.

    .. math:: z_{o,j} = \sum_{a,i} \sum_{b} w_{o,a,j-i,b}\, (R_{\theta_j} \psi_b) * y_{a,i} ,

    with j - i modulo N: how an edge lies relative to another one, whatever the orientation of both. See
    :class:`SteerableConv`.

    Args:
        in_maps: Number of input maps, N per feature.
        out_features: Number of output features.
        orientations: Number N of orientations, a multiple of 4.
        size: Side length of the filters in pixels, odd.

    Shape:
        ``y`` (batch, in_maps, nodes), ``omega`` (batch, 1, nodes) -> (batch, orientations * out_features, nodes).

    Example:
        >>> GroupConv(24, 2, orientations=8, size=3)(torch.rand(2, 24, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 16, 20])
    """

    def __init__(self, in_maps: int, out_features: int, orientations: int, size: int) -> None:
        super().__init__(in_maps, orientations, out_features, orientations, size)
