"""The statistics as computed by general-purpose libraries, which differ in the product with the Laplacian only."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tigranet import GridLaplacian, Laplacian, SparseLaplacian

Product = Callable[[Tensor], Tensor]


def statistics_by(product: Product, z: Tensor, active: Tensor, order: int, nodes: int) -> Tensor:
    """Compute mean and variance of the magnitudes in the Chebyshev recursion.

    Args:
        product: Product with L - I.
        z: Signals.
        active: Mask of the active nodes.
        order: Highest order.
        nodes: Axis of the nodes.
    """
    previous = t = z * active
    phi: list[Tensor] = []
    for k in range(order + 1):
        if k:
            previous, t = t, product(t) if k == 1 else 2 * product(t) - previous
        variance, mean = torch.var_mean(t.abs(), dim=nodes, correction=0)
        phi += [mean, variance]
    return torch.stack(phi, dim=-1)


def edges(size: int) -> tuple[Tensor, Tensor]:
    """Return the edges of the grid in the format of PyTorch Geometric, and the entries of L - I."""
    constant = SparseLaplacian.from_mask(torch.ones(size, size, dtype=torch.bool)).normalized_adjacency.coalesce()
    return constant.indices(), -constant.values().float()


def cheb_conv(size: int, device: torch.device) -> Product:
    """Return the propagation that PyTorch Geometric's ChebConv calls once per order.

    It acts on (batch, nodes, maps) or (nodes, signals).
    """
    from torch_geometric.nn import ChebConv

    convolution: Any = ChebConv(1, 1, 1).to(device)
    edge_index, norm = (tensor.to(device) for tensor in edges(size))
    return lambda t: convolution.propagate(edge_index, x=t, norm=norm)


def cheb_conv_as_called(size: int, batch: int, device: torch.device) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return the statistics with PyTorch Geometric's ChebConv as a user calls it.

    A batch of graphs is one large graph, and x has the shape (all nodes, maps). Every call normalises the Laplacian
    again and then propagates once per order, like ``ChebConv.forward``.
    """
    from torch_geometric.nn import ChebConv

    convolution: Any = ChebConv(1, 1, 1).to(device)
    grid_edges = edges(size)[0]
    offsets = torch.arange(batch).repeat_interleave(grid_edges.shape[1]) * size * size
    edge_index = (grid_edges.repeat(1, batch) + offsets).to(device)

    def statistics(x: Tensor, active: Tensor, order: int) -> Tensor:
        all_edges, norm = convolution.__norm__(
            edge_index, len(x), None, convolution.normalization, torch.tensor(2.0, device=device), dtype=x.dtype
        )
        previous = t = x * active
        phi: list[Tensor] = []
        for k in range(order + 1):
            if k:
                product = convolution.propagate(all_edges, x=t, norm=norm)
                previous, t = t, product if k == 1 else 2 * product - previous
            magnitude = t.abs().view(batch, -1, x.shape[1])
            variance, mean = torch.var_mean(magnitude, dim=1, correction=0)
            phi += [mean, variance]
        return torch.stack(phi, dim=-1)

    return statistics


class ChebConvLaplacian(Laplacian):
    """The Laplacian of the grid with the propagation of ChebConv, so that unchanged layers can run on it."""

    def __init__(self, size: int, device: torch.device) -> None:
        super().__init__(size * size, torch.empty(0))
        self._product = cheb_conv(size, device)

    def shifted(self, y: Tensor) -> Tensor:
        """Return (L - I) y."""
        return self._product(y.transpose(-1, -2)).transpose(-1, -2)


class ChebConvNetwork(nn.Module):
    """A network of PyTorch Geometric's ChebConv layers with ReLU, the mean over all pixels, and a linear layer.

    A batch of images is one large graph, as its users write it. Every layer normalises the Laplacian in every call.

    Args:
        maps: Number of maps of each layer.
        orders: Number of Chebyshev polynomials of each layer, the degree plus 1.
        num_classes: Number of classes.
        size: Side length of the images.
    """

    def __init__(self, maps: tuple[int, ...], orders: int, num_classes: int, size: int) -> None:
        super().__init__()
        from torch_geometric.nn import ChebConv

        self.layers = nn.ModuleList(ChebConv(ins, outs, orders) for ins, outs in pairwise((1, *maps)))
        self.classifier = nn.Linear(maps[-1], num_classes)
        self.register_buffer("edge_index", edges(size)[0])
        self.size = size

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images (batch, 1, size, size)."""
        batch, nodes = len(images), self.size**2
        offsets = torch.arange(batch, device=images.device).repeat_interleave(self.edge_index.shape[1]) * nodes
        edge_index = self.edge_index.repeat(1, batch) + offsets
        x = images.reshape(batch * nodes, 1)
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.classifier(x.view(batch, nodes, -1).mean(1))


def scattering_network(size: int, units: tuple[int, ...], num_classes: int, device: torch.device) -> nn.Module | None:
    """Return kymatio's scattering (two layers, two scales) with fully connected layers.

    Returns None if kymatio is not installed, or does not work with the installed SciPy.
    """
    try:
        from kymatio.torch import Scattering2D
    except ImportError as error:
        print(f"skipped kymatio: {error}")
        return None
    scattering: Any = Scattering2D(2, (size, size)).to(device)
    widths = [scattering(torch.zeros(1, 1, size, size, device=device)).numel(), *units, num_classes]
    layers = [layer for ins, outs in pairwise(widths) for layer in (nn.Linear(ins, outs), nn.ReLU())]
    return nn.Sequential(scattering, nn.Flatten(), *layers[:-1]).to(device)


def dense(size: int, device: torch.device) -> Product:
    """Return the product with a dense N x N matrix, as in the public re-implementation."""
    matrix = GridLaplacian(size, size).shifted(torch.eye(size * size)).to(device)
    return lambda t: t @ matrix


def csr(size: int, device: torch.device) -> Product:
    """Return the product with a sparse matrix in CSR format, for signals with nodes first."""
    edge_index, norm = edges(size)
    coo = torch.sparse_coo_tensor(edge_index, norm, (size * size, size * size)).coalesce()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that CSR is in beta
        matrix = coo.to_sparse_csr().to(device)
    return lambda t: matrix @ t
