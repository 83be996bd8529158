import pytest
import torch

from tigranet import GridLaplacian, SparseLaplacian
from tigranet.layers import Coarsen


@pytest.mark.parametrize("graph", [GridLaplacian(6, 7), SparseLaplacian.from_mask(torch.ones(4, 5, dtype=torch.bool))])
def test_it_is_the_coarsening_of_the_graph(graph):
    y = torch.rand(2, 3, graph.num_nodes)
    result = Coarsen()(y, graph)
    torch.testing.assert_close(result, graph.coarsening(y), rtol=0, atol=1e-6)
    assert result.shape == (2, 3, graph.coarsening.laplacian.num_nodes)


def test_it_learns_nothing():
    assert not list(Coarsen().parameters())
