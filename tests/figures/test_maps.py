import numpy as np
import torch
from matplotlib.figure import Figure

from tigranet import TIGraNet
from tigranet.figures.maps import (
    INACTIVE_COLOUR,
    draw_convolution_map,
    draw_image_row,
    draw_pooling,
    pooled_maps,
)

ARCHITECTURE = "SC[2,2]-DP[20]-SC[3,2]-DP[10]-S[2]"


def test_an_image_spans_black_to_white_and_masked_pixels_are_pale():
    axes = Figure().add_subplot()
    plane = np.arange(12.0).reshape(3, 4)
    mask = plane > 5
    draw_image_row(axes, [plane, plane], [None, mask], [False, True])
    unmasked, masked = (np.asarray(image.get_array()) for image in axes.images)
    assert unmasked.min() == 0
    assert unmasked.max() == 1
    assert np.argmin(unmasked[..., 0]) == 11  # the highest value is black
    assert (masked[~mask] == INACTIVE_COLOUR).all()
    np.testing.assert_array_equal(masked[mask], unmasked[mask])
    assert axes.patches[1].get_linewidth() > axes.patches[0].get_linewidth()


def test_captions_are_in_the_lower_right_corners():
    axes = Figure().add_subplot()
    draw_image_row(axes, [np.zeros((10, 20))] * 2, misclassified=[False, True], captions=["cat", "dog"])
    assert [text.get_text() for text in axes.texts] == ["cat", "dog"]
    for text, frame in zip(axes.texts, axes.patches, strict=True):
        right, bottom = frame.get_x() + frame.get_width(), frame.get_y() + frame.get_height()
        x, y = text.get_position()
        assert right - 2 < x < right
        assert bottom - 2 < y < bottom
    assert axes.texts[0].get_color() != axes.texts[1].get_color()


def test_a_constant_image_is_as_dark_as_its_value():
    axes = Figure().add_subplot()
    draw_image_row(axes, [np.full((3, 3), value) for value in (7.0, 0.25, 0.0, -7.0)])
    assert [float(np.asarray(image.get_array()).mean()) for image in axes.images] == [0, 0.75, 1, 1]


def test_pooled_maps_are_drawn_with_their_active_nodes():
    net = TIGraNet(ARCHITECTURE, 2).eval()
    image = torch.rand(1, 6, 7)
    assert [str(maps.layer) for maps in pooled_maps(net, image[None])] == ["DP[20]", "DP[10]"]
    rows = Figure().subplots(3, 1)
    draw_pooling(list(rows), net, image)
    (first,) = (maps for maps in net.maps(image[None]) if str(maps.layer) == "DP[20]")
    union = first.active[0].any(0).reshape(6, 7).numpy()
    titles = [row.get_title(loc="left") for row in rows]
    assert titles[0] == "image"
    assert "DP[20]" in titles[1]
    assert f"({union.sum()} of 42)" in titles[1]
    assert "DP[10]" in titles[2]
    pixels = np.asarray(rows[1].images[0].get_array())
    inactive = (pixels == INACTIVE_COLOUR).all(-1)
    np.testing.assert_array_equal(~inactive, first.active[0, 0].reshape(6, 7).numpy())
    omega = np.asarray(rows[1].images[-1].get_array())
    np.testing.assert_array_equal((omega == 0).all(-1), union)


def test_a_network_without_pooling_shows_its_last_maps():
    net = TIGraNet("SC[2,2]-S[2]", 2).eval()
    images = torch.rand(4, 1, 5, 5)
    (last,) = pooled_maps(net, images)
    assert str(last.layer) == "SC[2,2]"
    axes = Figure().add_subplot()
    draw_convolution_map(axes, net, images, 0, 1)
    assert len(axes.images) == 4
    for image, z in zip(axes.images, last.z[:, 1], strict=True):
        plane = z.reshape(5, 5).numpy()
        grey = 1 - (plane - plane.min()) / (plane.max() - plane.min())
        np.testing.assert_allclose(np.asarray(image.get_array())[..., 0], grey, atol=1e-5)
