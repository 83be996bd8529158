"""The same statistics, as general tools would compute them: only the product with the Laplacian differs."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tigranet import GridLaplacian, SparseLaplacian

Product = Callable[[Tensor], Tensor]


def statistics_by(product: Product, z: Tensor, active: Tensor, order: int, nodes: int) -> Tensor:
    """Mean and variance of the magnitudes of the Chebyshev recursion, nodes in axis ``nodes``."""
    before = t = z * active
    phi: list[Tensor] = []
    for k in range(order + 1):
        if k:
            before, t = t, product(t) if k == 1 else 2 * product(t) - before
        variance, mean = torch.var_mean(t.abs(), dim=nodes, correction=0)
        phi += [mean, variance]
    return torch.stack(phi, dim=-1)


def edges(size: int) -> tuple[Tensor, Tensor]:
    """The grid as PyTorch Geometric reads one, and the entries of L - I."""
    constant = SparseLaplacian.from_mask(torch.ones(size, size, dtype=torch.bool))._constant.coalesce()
    return constant.indices(), -constant.values().float()


def cheb_conv(size: int, device: torch.device) -> Product:
    """PyTorch Geometric's ChebConv: what it calls once an order, on (batch, nodes, maps) or (nodes, signals)."""
    from torch_geometric.nn import ChebConv

    convolution: Any = ChebConv(1, 1, 1).to(device)
    edge_index, norm = (tensor.to(device) for tensor in edges(size))
    return lambda t: convolution.propagate(edge_index, x=t, norm=norm)


def dense(size: int, device: torch.device) -> Product:
    """One N x N matrix, as the public re-implementation does."""
    matrix = GridLaplacian(size, size).shifted(torch.eye(size * size)).to(device)
    return lambda t: t @ matrix


def csr(size: int, device: torch.device) -> Product:
    """A compressed sparse matrix, nodes first."""
    edge_index, norm = edges(size)
    coo = torch.sparse_coo_tensor(edge_index, norm, (size * size, size * size)).coalesce()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in beta, says PyTorch
        matrix = coo.to_sparse_csr().to(device)
    return lambda t: matrix @ t
