from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet import GridLaplacian, TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, Isometry, LabelledImages, rotate
from tigranet.evaluation.accuracy import accuracy, predict
from tigranet.figures.gallery import (
    COLUMNS,
    MAX_ERRORS,
    ROTATION_ANGLES,
    _example_index,
    _interleave_classes,
    draw_gallery,
    save_gallery,
)
from tigranet.figures.maps import ERROR_COLOUR, INACTIVE_COLOUR
from tigranet.graphs import Eigenbasis

FIGURE_NAMES = ["after-pooling", "answers", "filters", "pooling", "test-images", "turned"]


def random_data(images=6, channels=1, size=(9, 9), class_names=("a", "b"), motion=None):
    labels = torch.arange(images) % len(class_names)
    part = LabelledImages(torch.rand(images, channels, *size), labels)
    return DataSet("d", class_names, part, part, part, motion or Isometry())


def grey_levels(plane):
    """How an image is shown: scaled to [0, 1], high values black."""
    return 1 - (plane - plane.min()) / (plane.max() - plane.min())


def shown_images(axes):
    return [np.asarray(image.get_array())[..., 0] for image in axes.images]


def assert_shows(axes, planes):
    """Assert that the axes show these images, in this order."""
    for shown, plane in zip(shown_images(axes), planes, strict=True):
        np.testing.assert_allclose(shown, grey_levels(plane.numpy()), atol=1e-5)


# The figures show the data


def test_the_rotated_image_is_shown_at_every_angle_with_its_predictions_and_its_maps():
    data = random_data(motion=Isometry(padding="reflection"))
    net = TIGraNet("SC[3,2]-S[1]", 2).eval()
    rows = draw_gallery(net, data)["turned"].axes
    example = data.test.images[[_example_index(net, data)]].expand(len(ROTATION_ANGLES), -1, -1, -1)
    images = rotate(example, torch.tensor(ROTATION_ANGLES), padding="reflection")
    assert_shows(rows[0], images[:, 0])
    predictions = predict(net, images)
    assert [text.get_text() for text in rows[0].texts] == [data.class_names[p] for p in predictions]
    label = data.test.labels[_example_index(net, data)]
    assert [text.get_color() == ERROR_COLOUR for text in rows[0].texts] == (predictions != label).tolist()
    with torch.inference_mode():
        maps = net.maps(images)[0].z.unflatten(-1, (9, 9))
    assert len(rows) == 1 + 3
    for number, row in enumerate(rows[1:]):
        assert_shows(row, maps[:, number])


def test_test_images_are_transformed_and_shown_with_predictions_and_errors():
    data = random_data(images=30, motion=Isometry(max_shift=2))
    net = TIGraNet("SC[2,2]-S[1]", 2).eval()
    moved = data.test_motion(data.test.images, torch.Generator().manual_seed(5))
    predictions = predict(net, moved)
    wrong = predictions != data.test.labels
    assert 0 < int(wrong.sum()) < 30  # both kinds of images can be shown
    rows = draw_gallery(net, data, seed=5)["test-images"].axes
    candidates = [grey_levels(image[0].numpy()) for image in moved]
    indices = [
        next(number for number, levels in enumerate(candidates) if np.allclose(levels, shown, atol=1e-5))
        for shown in shown_images(rows[0])
    ]
    errors = min(MAX_ERRORS, int(wrong.sum()))
    correct = min(COLUMNS - errors, int((~wrong).sum()))
    assert wrong[indices].tolist() == [False] * correct + [True] * errors
    assert [text.get_text() for text in rows[0].texts] == [data.class_names[p] for p in predictions[indices]]
    assert [text.get_color() == ERROR_COLOUR for text in rows[0].texts] == wrong[indices].tolist()
    assert "shifted by up to 2 pixels" in rows[0].get_title(loc="left")


def test_predictions_of_baselines_are_shown_in_one_row_per_network():
    data = random_data(motion=Isometry(max_shift=1))
    net, baseline = TIGraNet("SC[2,2]-S[1]", 2).eval(), ConvNet("C[2]-P[2]", 2, 9)
    rows = draw_gallery(net, data, seed=3, baselines={"ConvNet": baseline})["answers"].axes
    moved = data.test._replace(images=data.test_motion(data.test.images, torch.Generator().manual_seed(3)))
    order = _interleave_classes(data.test.labels)
    for row, name, network in zip(rows, ("ConvNet", "TIGraNet"), (baseline, net), strict=True):
        assert_shows(row, moved.images[order, 0])
        predictions = predict(network, moved.images[order])
        assert [text.get_text() for text in row.texts] == [data.class_names[p] for p in predictions]
        assert row.get_title(loc="left").startswith(f"{name}: ")
        assert f"{accuracy(network, moved):.1f} %" in row.get_title(loc="left")


def test_upright_test_images_are_rotated_for_the_comparison_with_baselines():
    data = random_data()
    figure = draw_gallery(TIGraNet("SC[2,2]-S[1]", 2).eval(), data, 3, {"ConvNet": ConvNet("C[2]-P[2]", 2, 9)})
    rotated = Isometry(rotated=True)(data.test.images, torch.Generator().manual_seed(3))
    assert_shows(figure["answers"].axes[0], rotated[_interleave_classes(data.test.labels), 0])


@pytest.mark.parametrize("diagonal", [1.0, 0.1])
def test_filters_are_drawn_over_the_spectrum_of_the_networks_own_grid(diagonal):
    net = TIGraNet("SC[2,2]-SC[3,1]-S[1]", 2, diagonal=diagonal, boundary="torus").eval()
    axes = draw_gallery(net, random_data())["filters"].axes
    end = float(Eigenbasis.of(GridLaplacian(9, 9, boundary="torus", diagonal=diagonal)).lam[-1])
    other = float(Eigenbasis.of(GridLaplacian(9, 9, boundary="torus", diagonal=1.1 - diagonal)).lam[-1])
    assert abs(end - other) > 0.1  # the test can tell the two grids apart
    assert [panel.get_xlim()[1] for panel in axes] == pytest.approx([end, end], abs=0.02)
    layers = [layer for layer in net.graph_layers if hasattr(layer, "alpha")]
    for panel, layer in zip(axes, layers, strict=True):
        curves = [line for line in panel.lines if len(line.get_xdata()) > 2]
        assert [line.get_ydata()[0] for line in curves] == pytest.approx(layer.alpha[:, 0].tolist(), abs=1e-6)


def test_pooled_maps_are_shown_for_one_image_per_class_with_dropped_nodes_pale():
    data = random_data(images=4, channels=3, size=(8, 11), class_names=("a", "b", "c"))
    net = TIGraNet("SC[2,2]-DP[9]-SC[7,2]-DP[5]-S[1]", 3, in_maps=3).eval()
    figures = draw_gallery(net, data)
    rows = figures["after-pooling"].axes
    order = _interleave_classes(data.test.labels)[:6]
    with torch.inference_mode():
        first, second = (maps for maps in net.maps(data.test.images[order]) if maps.active is not None)
    assert len(rows) == len(order)
    for number, row in enumerate(rows):
        np.testing.assert_allclose(
            shown_images(row)[0], grey_levels(data.test.images[order[number]].mean(0).numpy()), atol=1e-5
        )
        masks = [*first.active[number, :4], *second.active[number, :4]]  # nine columns shared by two layers
        for image, mask in zip(row.images[1:], masks, strict=True):
            pale = (np.asarray(image.get_array()) == INACTIVE_COLOUR).all(-1)
            np.testing.assert_array_equal(~pale, mask.reshape(8, 11).numpy())
    assert len(figures["pooling"].axes) == 3


# Files


def test_every_figure_is_written_in_both_formats(tmp_path, trained, mnist_012):
    baselines = {"ConvNet": ConvNet("paper-small", 3, 28)}
    paths = save_gallery(tmp_path / "new", trained, mnist_012, 0, baselines)
    expected = [f"{name}.{suffix}" for name in FIGURE_NAMES for suffix in ("png", "svg")]
    assert sorted(path.name for path in paths) == expected
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == expected
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.size[0] >= 1000
                assert len(image.convert("L").getcolors()) > 20  # not blank


def test_equal_arguments_give_equal_files(tmp_path):
    data = random_data(motion=Isometry(max_shift=1))
    net = TIGraNet("SC[2,2]-S[1]", 2).eval()
    first, second = (save_gallery(tmp_path / name, net, data) for name in ("one", "two"))
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("SC[2,2]-S[1]", ["filters", "test-images", "turned"]),
        ("MC[2,2]-OP[1]-MC[3,1]-S[1]", ["test-images", "turned"]),
    ],
)
def test_a_figure_is_left_out_if_the_network_has_no_such_layer(architecture, names):
    assert sorted(draw_gallery(TIGraNet(architecture, 2).eval(), random_data())) == names


def test_class_names_that_the_font_lacks_and_a_network_that_is_never_right_are_drawn(tmp_path, monkeypatch):
    data = random_data(class_names=("日本", "語"))
    monkeypatch.setattr("tigranet.figures.gallery.predict", lambda _, images: torch.full((len(images),), 1))
    wrong_labels = data.test._replace(labels=torch.zeros(6, dtype=torch.int64))
    data = replace(data, test=wrong_labels)
    paths = save_gallery(tmp_path, TIGraNet("SC[2,2]-S[1]", 2).eval(), data)
    (svg,) = (path for path in paths if path.name == "test-images.svg")
    assert svg.read_text().count("語") == 6
    figure = draw_gallery(TIGraNet("SC[2,2]-S[1]", 2).eval(), data)["test-images"]
    assert [text.get_color() for text in figure.axes[0].texts] == [ERROR_COLOUR] * 6


# Which images are shown


def test_classes_alternate():
    labels = torch.tensor([2, 2, 0, 1, 0, 2])
    assert _interleave_classes(labels).tolist() == [2, 3, 0, 4, 1, 5]


@pytest.mark.parametrize(("predictions", "expected"), [([0, 2, 2], 3), ([0, 1, 0], 2)])
def test_the_example_is_correctly_classified_if_possible(monkeypatch, predictions, expected):
    images = LabelledImages(torch.rand(5, 1, 4, 4), torch.tensor([0, 1, 2, 2, 2]))
    data = DataSet("d", ("a", "b", "c"), images, images, images)
    monkeypatch.setattr("tigranet.figures.gallery.predict", lambda *_: torch.tensor(predictions))
    assert _example_index(TIGraNet("SC[1,1]-S[1]", 3), data) == expected


def test_a_network_with_coarsening_is_drawn_with_its_smaller_maps():
    net = TIGraNet("LC[2,3]-GB[3]-D-MO[3]-DP[9]-D-MC[2,1]-DP[4]-S[0]", 2).eval()
    figures = draw_gallery(net, random_data(size=(10, 12)))
    assert sorted(figures) == ["after-pooling", "pooling", "test-images", "turned"]
    sizes = {image.shape for axes in figures["turned"].axes for image in shown_images(axes)}
    assert sizes == {(10, 12), (3, 3)}
