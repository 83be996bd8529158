"""Every graph layer of the notation has a module with the announced number of maps."""

import pytest
import torch

from tigranet import GridLaplacian
from tigranet.architecture import DP, GB, GC, GP, LC, MC, MO, MP, OP, SC, D, R, S
from tigranet.graph_layer import build_graph_layer


@pytest.mark.parametrize(
    ("layer", "in_maps", "out_maps"),
    [
        (SC(5, 2), 3, 5),
        (MC(5, 2), 3, 5),
        (OP(2, 1), 3, None),
        (MP(2, 1), 3, None),
        (GP(2, 1), 3, None),
        (R(2, 1, 2), 3, 3),
        (LC(2, 3), 3, 16),
        (GC(3, 3), 16, 24),
        (GB(3), 16, 16),
        (MO(5), 16, 5),
    ],
    ids=str,
)
def test_a_layer_has_the_maps_that_it_announces(layer, in_maps, out_maps):
    module = build_graph_layer(layer, in_maps, 8, 2.0, "keep")
    z = module(torch.rand(2, in_maps, 20), GridLaplacian(4, 5))
    assert z.shape == (2, module.out_maps, 20)
    assert out_maps in (None, module.out_maps)


def test_layers_without_maps_of_their_own():
    y, grid = torch.rand(2, 3, 20), GridLaplacian(4, 5)
    assert build_graph_layer(D(), 3, 1, 2.0, "keep")(y, grid).shape == (2, 3, 6)
    assert build_graph_layer(DP(4), 3, 1, 2.0, "keep")(y, None).sum(-1).eq(4).all()


def test_statistics_are_no_graph_layer():
    with pytest.raises(TypeError, match="graph layer"):
        build_graph_layer(S(2), 3, 1, 2.0, "keep")
