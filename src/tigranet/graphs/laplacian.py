"""The normalized Laplacian: all that a layer ever sees of a graph."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor


class Laplacian(ABC):
    r"""The normalized Laplacian of an undirected weighted graph (Sec. 3 of the paper),

    .. math:: L = I - D^{-1/2} A D^{-1/2},

    as an operator: ``laplacian(y)`` is :math:`L y` along the last axis of ``y``, on the device and in
    the dtype of ``y``. It is symmetric with spectrum in [0, 2]. A new kind of graph is one new class
    with one method, :meth:`shifted`.
    """

    def __init__(self, num_nodes: int, constant: Tensor) -> None:
        """``constant``: what the operator is made of (float64, on the CPU), for :meth:`_constant_like`."""
        self.num_nodes = num_nodes
        self._constant = constant
        self._converted: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    @abstractmethod
    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r""":math:`(L - I) y = -D^{-1/2} A D^{-1/2} y`: the spectrum moved to [-1, 1], where Chebyshev lives."""

    def __call__(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        """:math:`L y`."""
        return y + self.shifted(y)

    def carre_du_champ(
        self, f: Float[Tensor, "*batch nodes"], g: Float[Tensor, "*batch nodes"]
    ) -> Float[Tensor, "*batch nodes"]:
        r"""The product of two gradients, :math:`\nabla f \cdot \nabla g`, where there are no coordinates:

        .. math:: \Gamma(f, g) = \tfrac12 \left(f L g + g L f - L(f g) - f g\, L 1\right), \qquad
            \Gamma(f, g)_i = \tfrac12 \sum_j w_{ij} (f_i - f_j)(g_i - g_j), \quad
            w_{ij} = a_{ij} / \sqrt{d_i d_j} .

        The last term is zero where all degrees are equal. At a border they are not, :math:`L 1` is not zero, and
        without that term constants would have a gradient there.
        """
        fg = f * g
        at_borders = fg * self(torch.ones(self.num_nodes, dtype=f.dtype, device=f.device))
        return (f * self(g) + g * self(f) - self(fg) - at_borders) / 2

    def to_dense(self, dtype: torch.dtype = torch.float64) -> Float[Tensor, "nodes nodes"]:
        """The N x N matrix, for small graphs and for tests."""
        return self(torch.eye(self.num_nodes, dtype=dtype))

    def _check(self, y: Tensor) -> None:
        if y.ndim == 0 or y.shape[-1] != self.num_nodes:
            raise ValueError(f"{self!r} reads {self.num_nodes} values in the last axis, got shape {tuple(y.shape)}")
        if y.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"a signal is float32 or float64, got {y.dtype}: convert it with .float(), or use autocast")

    def _constant_like(self, y: Tensor) -> Tensor:
        """The constant where ``y`` is, converted once for each dtype and device."""
        key = (y.dtype, y.device)
        constant = self._converted.get(key)
        if constant is None:
            with torch.inference_mode(False):  # it is kept for later calls, which may train
                constant = self._constant.to(dtype=y.dtype, device=y.device, copy=True)
            if not torch.compiler.is_compiling():
                self._converted[key] = constant
        return constant
