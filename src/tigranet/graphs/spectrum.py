"""The spectral side of a small graph (Sec. 3): Fourier transform, convolution, filtering, translation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.laplacian import Laplacian

MAX_NODES = 4096
"""An eigenbasis of more nodes takes minutes and a gigabyte; polynomials of L need none."""


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    r"""The eigenvalues :math:`\lambda_0 \le \dots \le \lambda_{N-1}` of a Laplacian and its orthonormal
    eigenvectors :math:`\chi_i`, the columns of ``chi``: the graph's frequencies and Fourier basis.

    The network never needs it; it is here to study a graph and to check polynomials by another road.

    >>> from tigranet import GridLaplacian
    >>> basis = Eigenbasis.of(GridLaplacian(4, 4))
    >>> y = torch.rand(16, dtype=torch.float64)
    >>> torch.allclose(basis.inverse_fourier(basis.fourier(y)), y)
    True
    """

    lam: Float[Tensor, " nodes"]
    chi: Float[Tensor, "nodes nodes"]

    @classmethod
    def of(cls, laplacian: Laplacian, dtype: torch.dtype = torch.float64) -> "Eigenbasis":
        """Decompose ``laplacian``, at most ``MAX_NODES`` nodes large."""
        if laplacian.num_nodes > MAX_NODES:
            raise ValueError(f"an eigenbasis is for at most {MAX_NODES} nodes, {laplacian!r} has {laplacian.num_nodes}")
        return cls(*torch.linalg.eigh(laplacian.to_dense(dtype)))

    def fourier(self, y: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r""":math:`\hat y(\lambda_i) = \sum_n y(v_n) \chi_i(v_n)`."""
        return y @ self.chi

    def inverse_fourier(self, y_hat: Float[Tensor, "*batch nodes"]) -> Float[Tensor, "*batch nodes"]:
        r""":math:`y(v_n) = \sum_i \hat y(\lambda_i) \chi_i(v_n)`."""
        return y_hat @ self.chi.T

    def convolve(
        self, y1: Float[Tensor, "*batch nodes"], y2: Float[Tensor, "*batch nodes"]
    ) -> Float[Tensor, "*batch nodes"]:
        r""":math:`(y_1 * y_2)(v_n) = \sum_i \hat y_1(\lambda_i) \hat y_2(\lambda_i) \chi_i(v_n)` (Eq. conv)."""
        return self.inverse_fourier(self.fourier(y1) * self.fourier(y2))

    def filter_matrix(self, h: Callable[[Tensor], Tensor]) -> Float[Tensor, "nodes nodes"]:
        r""":math:`H = \chi \hat H \chi^T` with :math:`\hat H = \mathrm{diag}(\hat h(\lambda_i))` (Eq. hatH)."""
        return (self.chi * h(self.lam)) @ self.chi.T

    def filter(self, y: Float[Tensor, "*batch nodes"], h: Callable[[Tensor], Tensor]) -> Float[Tensor, "*batch nodes"]:
        r""":math:`\hat y_f(\lambda_i) = \hat y(\lambda_i) \hat h(\lambda_i)`, back on the nodes."""
        return self.inverse_fourier(self.fourier(y) * h(self.lam))

    def translate(self, y: Float[Tensor, "*batch nodes"], node: int) -> Float[Tensor, "*batch nodes"]:
        r""":math:`T_{v_n} y = \sqrt N \sum_i \hat y(\lambda_i) \chi_i(v_n) \chi_i` (Eq. transl): moved to ``node``."""
        return len(self.lam) ** 0.5 * self.inverse_fourier(self.fourier(y) * self.chi[node])
