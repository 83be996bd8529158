import numpy as np
import torch
from matplotlib.figure import Figure

from tigranet import TIGraNet
from tigranet.figures.maps import draw_layer, draw_pooling, draw_row, pooled

NET = "SC[2,2]-DP[20]-SC[3,2]-DP[10]-S[2]"


def test_a_plane_spans_black_and_white_and_what_is_masked_is_pale():
    axes = Figure().add_subplot()
    plane = np.arange(12.0).reshape(3, 4)
    mask = plane > 5
    draw_row(axes, [plane, plane], [None, mask], [False, True])
    whole, part = (np.asarray(image.get_array()) for image in axes.images)
    assert whole.min() == 0
    assert whole.max() == 1
    assert np.argmin(whole[..., 0]) == 11  # dark for high
    assert (part[~mask] == [0.86, 0.92, 0.97]).all()
    assert axes.patches[1].get_linewidth() > axes.patches[0].get_linewidth()


def test_a_constant_plane_is_drawn():
    axes = Figure().add_subplot()
    draw_row(axes, [np.full((3, 3), 7.0)])
    assert np.isfinite(np.asarray(axes.images[0].get_array())).all()


def test_each_pooling_is_drawn_with_its_active_nodes():
    net = TIGraNet(NET, 2).eval()
    image = torch.rand(1, 6, 7)
    assert [str(maps.layer) for maps in pooled(net, image)] == ["DP[20]", "DP[10]"]
    places = Figure().subplots(3, 1)
    draw_pooling(list(places), net, image)
    assert [place.get_title(loc="left") for place in places] == ["image", "after DP[20]", "after DP[10]"]
    (first,) = (maps for maps in net.maps(image[None]) if str(maps.layer) == "DP[20]")
    drawn = np.asarray(places[1].images[0].get_array())
    pale = (drawn == [0.86, 0.92, 0.97]).all(-1)
    np.testing.assert_array_equal(~pale, first.active[0, 0].reshape(6, 7).numpy())


def test_a_network_without_pooling_has_its_last_maps_drawn():
    net = TIGraNet("SC[2,2]-S[2]", 2).eval()
    assert [str(maps.layer) for maps in pooled(net, torch.rand(1, 5, 5))] == ["SC[2,2]"]
    axes = Figure().add_subplot()
    draw_layer(axes, net, torch.rand(4, 1, 5, 5), 0, 1)
    assert len(axes.images) == 4
