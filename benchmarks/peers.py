"""The same statistics, as general tools would compute them: only the product with the Laplacian differs."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tigranet import GridLaplacian, Laplacian, SparseLaplacian

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


def cheb_conv_as_called(size: int, batch: int, device: torch.device) -> Callable[[Tensor, Tensor, int], Tensor]:
    """PyTorch Geometric's ChebConv as its user calls it: a batch of graphs is one graph, x is (all nodes, maps), and
    every call normalises the Laplacian anew and then propagates once an order, as ``ChebConv.forward`` does."""
    from torch_geometric.nn import ChebConv

    convolution: Any = ChebConv(1, 1, 1).to(device)
    one = edges(size)[0]
    shifts = torch.arange(batch).repeat_interleave(one.shape[1]) * size * size
    edge_index = (one.repeat(1, batch) + shifts).to(device)

    def statistics(x: Tensor, active: Tensor, order: int) -> Tensor:
        every, norm = convolution.__norm__(
            edge_index, len(x), None, convolution.normalization, torch.tensor(2.0, device=device), dtype=x.dtype
        )
        before = t = x * active
        phi: list[Tensor] = []
        for k in range(order + 1):
            if k:
                product = convolution.propagate(every, x=t, norm=norm)
                before, t = t, product if k == 1 else 2 * product - before
            size = t.abs().view(batch, -1, x.shape[1])
            variance, mean = torch.var_mean(size, dim=1, correction=0)
            phi += [mean, variance]
        return torch.stack(phi, dim=-1)

    return statistics


class ChebConvLaplacian(Laplacian):
    """The grid's Laplacian by ChebConv's propagation, so that the layers can be run on it as they are."""

    def __init__(self, size: int, device: torch.device) -> None:
        super().__init__(size * size, torch.empty(0))
        self._product = cheb_conv(size, device)

    def shifted(self, y: Tensor) -> Tensor:
        return self._product(y.transpose(-1, -2)).transpose(-1, -2)


def scattering_network(size: int, units: tuple[int, ...], num_classes: int, device: torch.device) -> nn.Module | None:
    """kymatio's scattering of two layers and two scales, and fully-connected layers; None where it is not installed, or
    not with a SciPy that it knows."""
    try:
        from kymatio.torch import Scattering2D
    except ImportError as error:
        print(f"kymatio is left out: {error}")
        return None
    scattering: Any = Scattering2D(2, (size, size)).to(device)
    widths = [scattering(torch.zeros(1, 1, size, size, device=device)).numel(), *units, num_classes]
    layers = [part for ins, outs in pairwise(widths) for part in (nn.Linear(ins, outs), nn.ReLU())]
    return nn.Sequential(scattering, nn.Flatten(), *layers[:-1]).to(device)


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
