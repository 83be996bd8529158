"""The spectral view of a small graph (Sec. 3): Fourier transform, convolution, filtering and translation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian

MAX_NODES = 4096
"""Largest graph that is decomposed. Larger ones take minutes and gigabytes, and polynomials of L need no eigenbasis."""


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    r"""The eigenvalues and eigenvectors of a Laplacian, which are the frequencies and the Fourier basis of the graph.

    The network does not use it. It serves to study a graph and to check polynomials of L by a second method.

    Example:
        >>> from tigranet import GridLaplacian
        >>> basis = Eigenbasis.of(GridLaplacian(4, 4))
        >>> y = torch.rand(16, dtype=torch.float64)
        >>> torch.allclose(basis.inverse_fourier(basis.fourier(y)), y)
        True
    """

    lam: Float[Tensor, " nodes"]
    r"""The eigenvalues :math:`\lambda_0 \le \dots \le \lambda_{N-1}`."""
    chi: Float[Tensor, "nodes nodes"]
    r"""The orthonormal eigenvectors :math:`\chi_i`, as columns."""

    @classmethod
    def of(cls, laplacian: Laplacian, dtype: torch.dtype = torch.float64) -> "Eigenbasis":
        """Decompose a Laplacian.

        Args:
            laplacian: The Laplacian, with at most :data:`MAX_NODES` nodes.
            dtype: Data type of the decomposition.

        Returns:
            The eigenbasis.

        Raises:
            ValueError: If the graph is too large.
        """
        if laplacian.num_nodes > MAX_NODES:
            raise ValueError(
                f"expected a graph of at most {MAX_NODES} nodes, {laplacian!r} has {laplacian.num_nodes}: "
                "use polynomials of L instead"
            )
        return cls(*torch.linalg.eigh(laplacian.to_dense(dtype)))

    def fourier(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r"""Compute the graph Fourier transform, :math:`\hat y(\lambda_i) = \sum_n y(v_n) \chi_i(v_n)`.

        Args:
            y: Signals on the nodes.

        Returns:
            One coefficient per frequency.
        """
        return y @ self.chi

    def inverse_fourier(self, y_hat: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r"""Compute the inverse transform, :math:`y(v_n) = \sum_i \hat y(\lambda_i) \chi_i(v_n)`.

        Args:
            y_hat: One coefficient per frequency.

        Returns:
            Signals on the nodes.
        """
        return y_hat @ self.chi.T

    def convolve(
        self, y1: Float[Tensor, "*batch nodes"], y2: Float[Tensor, "*batch nodes"]
    ) -> Float[Tensor, "*batch nodes"]:
        r"""Convolve two signals (Eq. conv).

        .. math:: (y_1 * y_2)(v_n) = \sum_i \hat y_1(\lambda_i) \hat y_2(\lambda_i) \chi_i(v_n)

        Args:
            y1: First signals.
            y2: Second signals.

        Returns:
            The convolved signals.
        """
        return self.inverse_fourier(self.fourier(y1) * self.fourier(y2))

    def filter_matrix(self, h: Callable[[Tensor], Tensor]) -> Float[Tensor, "nodes nodes"]:
        r"""Compute the matrix of a filter (Eq. hatH).

        .. math:: H = \chi \hat H \chi^T, \qquad \hat H = \mathrm{diag}(\hat h(\lambda_i))

        Args:
            h: Function that maps the eigenvalues to the filter's gains :math:`\hat h(\lambda_i)`.

        Returns:
            The matrix :math:`H`.
        """
        return (self.chi * h(self.lam)) @ self.chi.T

    def filter(self, y: Float[Tensor, "*batch nodes"], h: Callable[[Tensor], Tensor]) -> Float[Tensor, "*batch nodes"]:
        r"""Filter a signal: multiply its spectrum by the gains, :math:`\hat y(\lambda_i) \hat h(\lambda_i)`.

        Args:
            y: Signals on the nodes.
            h: Function that maps the eigenvalues to the filter's gains.

        Returns:
            The filtered signals on the nodes.
        """
        return self.inverse_fourier(self.fourier(y) * h(self.lam))

    def translate(self, y: Float[Tensor, "*batch nodes"], node: int) -> Float[Tensor, "*batch nodes"]:
        r"""Translate a signal to a node (Eq. transl).

        .. math:: T_{v_n} y = \sqrt N \sum_i \hat y(\lambda_i) \chi_i(v_n) \chi_i

        Args:
            y: Signals on the nodes.
            node: Number of the node :math:`v_n`.

        Returns:
            The translated signals.
        """
        return len(self.lam) ** 0.5 * self.inverse_fourier(self.fourier(y) * self.chi[node])
