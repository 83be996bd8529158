import pytest
import torch
from torch.autograd import gradcheck

from oracles import grid_adjacency, some_laplacians
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.layers import GradientProduct
from tigranet.testing import SQUARE, equivariance_error, on_nodes

LAPLACIANS = some_laplacians()


# the layer computes what its docstring defines


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
def test_the_product_is_a_standardised_sum_over_edges(laplacian):
    layer, y = GradientProduct(3, 2).double(), torch.rand(4, 3, laplacian.num_nodes, dtype=torch.float64)
    f, g = torch.einsum("pk,bkn->bpn", layer.mixtures, y).chunk(2, 1)
    w = torch.eye(laplacian.num_nodes, dtype=torch.float64) - laplacian.to_dense()
    products = (w * (f[..., None] - f[..., None, :]) * (g[..., None] - g[..., None, :])).sum(-1) / 2
    expected = torch.nn.functional.batch_norm(products, None, None, training=True, eps=1e-5)
    expected = expected / (1 + expected.abs() / 8).sqrt()
    result = layer(y, laplacian)
    assert torch.equal(result[:, :3], y)
    torch.testing.assert_close(result[:, 3:], expected)


# the layer has the symmetry that its docstring claims


def test_the_result_rotates_and_reflects_with_the_image_up_to_rounding():
    layer, y = GradientProduct(3, 2), torch.rand(2, 3, 81)
    layer(y, GridLaplacian(9, 9))
    layer.eval()
    for boundary in ("free", "torus"):
        grid = GridLaplacian(9, 9, boundary=boundary)
        for move in SQUARE.values():
            assert equivariance_error(lambda y, g=grid: layer(y, g), y, on_nodes(move, 9, 9)) < 1e-6


def test_the_result_does_not_depend_on_the_order_of_the_nodes():
    a, order = torch.from_numpy(grid_adjacency(4, 5, 8, "free")), torch.randperm(20)
    layer, y = GradientProduct(3, 2).double(), torch.rand(2, 3, 20, dtype=torch.float64)
    actual = layer(y[..., order], SparseLaplacian(a[order][:, order]))
    torch.testing.assert_close(actual, layer(y, SparseLaplacian(a))[..., order], rtol=0, atol=1e-12)
    torch.testing.assert_close(layer(y, GridLaplacian(4, 5)), layer(y, SparseLaplacian(a)), rtol=0, atol=1e-12)


# the layer has the right gradients


@pytest.mark.parametrize("laplacian", [LAPLACIANS["torus"], LAPLACIANS["mask"]], ids=["torus", "mask"])
def test_gradcheck(laplacian):
    layer = GradientProduct(2, 2).double()
    y = torch.rand(2, 2, laplacian.num_nodes, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda y, mixtures: torch.func.functional_call(layer, {"mixtures": mixtures}, (y, laplacian)),
        (y, layer.mixtures),
    )


# the layer is a well-behaved module


@pytest.mark.parametrize("laplacian", LAPLACIANS.values(), ids=LAPLACIANS.keys())
@pytest.mark.parametrize("batch", [0, 1, 5])
def test_one_layer_runs_on_every_kind_of_graph(laplacian, batch):
    layer = GradientProduct(2, 3)
    for training in (True, False):
        result = layer.train(training)(torch.rand(batch, 2, laplacian.num_nodes), laplacian)
        assert result.shape == (batch, 5, laplacian.num_nodes)


def test_repr():
    assert "3, pairs=2" in repr(GradientProduct(3, 2))
