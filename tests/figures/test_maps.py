import numpy as np
import torch
from matplotlib.figure import Figure

from tigranet import TIGraNet
from tigranet.figures.maps import DROPPED, draw_layer, draw_pooling, draw_row, pooled

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
    assert (part[~mask] == DROPPED).all()
    assert axes.patches[1].get_linewidth() > axes.patches[0].get_linewidth()


def test_what_is_said_of_a_plane_stands_in_its_corner():
    axes = Figure().add_subplot()
    draw_row(axes, [np.zeros((10, 20))] * 2, framed=[False, True], said=["cat", "dog"])
    assert [text.get_text() for text in axes.texts] == ["cat", "dog"]
    for text, frame in zip(axes.texts, axes.patches, strict=True):
        right, bottom = frame.get_x() + frame.get_width(), frame.get_y() + frame.get_height()
        x, y = text.get_position()
        assert right - 2 < x < right
        assert bottom - 2 < y < bottom
    assert axes.texts[0].get_color() != axes.texts[1].get_color()


def test_a_constant_plane_is_dark_if_it_is_positive():
    axes = Figure().add_subplot()
    draw_row(axes, [np.full((3, 3), value) for value in (7.0, 0.0, -7.0)])
    assert [float(np.asarray(image.get_array()).mean()) for image in axes.images] == [0, 1, 1]


def test_each_pooling_is_drawn_with_its_active_nodes():
    net = TIGraNet(NET, 2).eval()
    image = torch.rand(1, 6, 7)
    assert [str(maps.layer) for maps in pooled(net, image[None])] == ["DP[20]", "DP[10]"]
    places = Figure().subplots(3, 1)
    draw_pooling(list(places), net, image)
    titles = [place.get_title(loc="left") for place in places]
    assert titles[0] == "image"
    assert titles[2].startswith("maps after DP[10]; last, the nodes that any map keeps, ")
    (first,) = (maps for maps in net.maps(image[None]) if str(maps.layer) == "DP[20]")
    drawn = np.asarray(places[1].images[0].get_array())
    pale = (drawn == DROPPED).all(-1)
    np.testing.assert_array_equal(~pale, first.active[0, 0].reshape(6, 7).numpy())
    omega = np.asarray(places[1].images[-1].get_array())
    np.testing.assert_array_equal((omega == 0).all(-1), first.active[0].any(0).reshape(6, 7).numpy())


def test_a_network_without_pooling_has_its_last_maps_drawn():
    net = TIGraNet("SC[2,2]-S[2]", 2).eval()
    assert [str(maps.layer) for maps in pooled(net, torch.rand(1, 1, 5, 5))] == ["SC[2,2]"]
    axes = Figure().add_subplot()
    draw_layer(axes, net, torch.rand(4, 1, 5, 5), 0, 1)
    assert len(axes.images) == 4
