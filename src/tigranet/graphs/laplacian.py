"""The normalized Laplacian, the only view of a graph that the layers use."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.coarsening import Coarsening
from tigranet.graphs.device_constant import DeviceConstant
from tigranet.graphs.signal_check import check_signal


class Laplacian(ABC):
    r"""The normalized Laplacian of an undirected weighted graph, as an operator (Sec. 3 of the paper).

    .. math:: L = I - D^{-1/2} A D^{-1/2}

    ``laplacian(y)`` computes :math:`L y` along the last axis of ``y``, on the device and in the dtype of ``y``. The
    matrix :math:`L` is symmetric and its spectrum lies in [0, 2]. To add a new kind of graph, write one subclass that
    implements one method, :meth:`shifted`. If the graph can be coarsened, the subclass also implements ``_coarsen``.

    Args:
        num_nodes: Number of nodes of the graph.
        constant: Tensor that defines the operator, float64 on the CPU. Its meaning depends on the subclass.

    Attributes:
        num_nodes: Number of nodes of the graph.
    """

    _coarsening: Coarsening | None = None

    def __init__(self, num_nodes: int, constant: Tensor) -> None:
        self.num_nodes = num_nodes
        self._constant = constant
        self._converted_constant = DeviceConstant(constant)

    @abstractmethod
    def shifted(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r"""Compute :math:`(L - I) y = -D^{-1/2} A D^{-1/2} y`.

        The spectrum of :math:`L - I` lies in [-1, 1], the interval on which Chebyshev polynomials are defined.

        Args:
            y: Signals on the graph.

        Returns:
            Signals of the same shape, dtype and device as ``y``.

        Raises:
            ValueError: If the last axis of ``y`` does not have one value per node.
            TypeError: If ``y`` is neither float32 nor float64.

        Shape:
            ``(*batch, nodes) -> (*batch, nodes)``
        """

    def __call__(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        """Compute :math:`L y`."""
        return y + self.shifted(y)

    def carre_du_champ(
        self, f: Float[Tensor, "*batch nodes"], g: Float[Tensor, "*batch nodes"]
    ) -> Float[Tensor, "*batch nodes"]:
        r"""Compute the product of two gradients, :math:`\nabla f \cdot \nabla g`, without coordinates.

        .. math:: \Gamma(f, g) = \tfrac12 \left(f L g + g L f - L(f g) - f g\, L 1\right), \qquad
            \Gamma(f, g)_i = \tfrac12 \sum_j w_{ij} (f_i - f_j)(g_i - g_j), \quad
            w_{ij} = a_{ij} / \sqrt{d_i d_j} .

        The last term of the first formula is zero if all degrees are equal. At the border of a grid they differ, so
        :math:`L 1` is not zero there. Without this term a constant signal would have a non-zero gradient at the border.

        Args:
            f: First signals.
            g: Second signals, of the same shape as ``f``.

        Returns:
            The product at each node.

        Shape:
            ``(*batch, nodes), (*batch, nodes) -> (*batch, nodes)``
        """
        fg = f * g
        border_term = fg * self(torch.ones(self.num_nodes, dtype=f.dtype, device=f.device))
        return (f * self(g) + g * self(f) - self(fg) - border_term) / 2

    @property
    def coarsening(self) -> Coarsening:
        """The step to a coarser graph. It is computed at the first use and kept; copies and pickles do not contain it.

        A graph that cannot be coarsened raises an error: TypeError if no graph of its class can be, ValueError if
        this graph is too small.
        """
        coarsening = self._coarsening
        if coarsening is None:
            with torch.inference_mode(False):  # Later calls may record gradients, which inference tensors forbid.
                coarsening = self._coarsen()
            if not torch.compiler.is_compiling():
                self._coarsening = coarsening
        return coarsening

    def to_dense(self, dtype: torch.dtype = torch.float64) -> Float[Tensor, "nodes nodes"]:
        """Return :math:`L` as a dense matrix. It needs N x N numbers, so it is meant for small graphs and tests.

        Args:
            dtype: Data type of the matrix.

        Returns:
            The matrix, on the CPU.
        """
        return self(torch.eye(self.num_nodes, dtype=dtype))

    def _coarsen(self) -> Coarsening:
        """Compute :attr:`coarsening`."""
        raise TypeError(
            f"{self!r} cannot be coarsened: expected a graph with a coarsening, such as GridLaplacian or "
            f"SparseLaplacian, or a _coarsen method in {type(self).__name__}"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_coarsening"}

    def _check_signal(self, y: Tensor) -> None:
        """Raise an error if ``y`` is not a signal on this graph."""
        check_signal(y, self.num_nodes, self)

    def _constant_like(self, y: Tensor) -> Tensor:
        """Return the constant in the dtype and on the device of ``y``. Each conversion is computed once."""
        return self._converted_constant.like(y)
