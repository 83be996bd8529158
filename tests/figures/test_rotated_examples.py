from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.data.augment.rigid import rotate
from tigranet.evaluation.accuracy import predict
from tigranet.figures.rotated_examples import (
    EXAMPLE_ANGLES,
    MAX_EXAMPLE_CLASSES,
    MAX_EXAMPLE_VALUES,
    draw_rotated,
    save_rotated,
)


def draw(images, padding, angles=(0.0, 45.0)):
    axes = Figure().add_subplot()
    net = TIGraNet("SC[2,2]-S[1]", 2, in_maps=images.shape[1]).eval()
    data = LabelledImages(images, torch.zeros(len(images), dtype=torch.int64))
    draw_rotated(axes, net, data, ("a", "b"), angles, padding)
    return axes, net


def shown_images(*arguments):
    """Return what is shown of each image, at each angle."""
    axes, _ = draw(*arguments)
    return [np.asarray(image.get_array()) for image in axes.get_images()]


def test_a_figure_of_the_expected_size_is_saved(trained, mnist_012, tmp_path):
    save_rotated(tmp_path / "rotated.png", trained, mnist_012.test, mnist_012.class_names)
    with Image.open(tmp_path / "rotated.png") as image:
        assert min(image.size) > 500
        assert len(image.convert("L").getcolors()) > 50


def test_predictions_and_angles_are_written_and_errors_are_marked():
    images, angles = torch.rand(3, 1, 8, 8), (0.0, 30.0, 90.0)
    axes, net = draw(images, "zeros", angles)
    rotated = rotate(images.repeat_interleave(3, dim=0), torch.tensor(angles * 3))
    predictions = predict(net, rotated).tolist()
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text.endswith("°")] == ["0°", "30°", "90°"]
    expected = ["a" if prediction == 0 else "b ✗" for prediction in predictions]  # all labels are 0
    assert [text for text in texts if not text.endswith("°")] == expected
    assert [frame.get_linewidth() > 2 for frame in axes.patches] == [prediction == 1 for prediction in predictions]


def test_digits_are_dark_on_white_and_corners_are_filled_with_zeros():
    upright, rotated = shown_images(torch.full((1, 1, 8, 8), 0.75), "zeros")
    assert upright == pytest.approx(np.full((8, 8), 0.25))
    assert rotated[0, 0] == 1


@pytest.mark.parametrize("padding", ["reflection", "border", "background"])
def test_photographs_are_shown_in_colour_with_their_padding_in_the_corners(padding):
    images = torch.rand(1, 3, 8, 8)
    upright, rotated = shown_images(images, padding)
    assert upright == pytest.approx(images[0].permute(1, 2, 0).numpy(), abs=1e-6)
    expected = rotate(images, torch.tensor([45.0]), padding=padding)[0].permute(1, 2, 0)
    assert rotated == pytest.approx(expected.numpy(), abs=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_the_contrast_of_a_grey_photograph_is_stretched_equally_at_every_angle(channels):
    image = torch.linspace(0.4, 0.5, 400).reshape(1, 1, 20, 20).expand(-1, channels, -1, -1).clone()
    upright, rotated = shown_images(image, "reflection", (0.0, 180.0))
    assert (upright[0, 0], upright[-1, -1]) == (0, 1)
    assert np.median(upright) == pytest.approx(0.5, abs=0.01)
    assert rotated == pytest.approx(upright[::-1, ::-1], abs=1e-3)


def test_a_constant_image_is_shown_unchanged():
    upright, _ = shown_images(torch.full((1, 1, 8, 8), 0.25), "reflection")
    assert upright == pytest.approx(np.full((8, 8), 0.25))


def test_class_names_that_the_font_lacks_are_drawn_without_a_warning(tmp_path):
    data = LabelledImages(torch.rand(4, 1, 8, 8), torch.arange(4) % 2)
    save_rotated(tmp_path / "rotated.png", TIGraNet("SC[2,2]-S[1]", 2).eval(), data, ("日本", "語"), "reflection")
    assert (tmp_path / "rotated.png").stat().st_size > 1000


def saved_figure(tmp_path, monkeypatch, data, class_names, **options):
    """Return the figure that is saved, and the labels of its images."""
    figures, drawn = [], []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    monkeypatch.setattr(
        "tigranet.figures.rotated_examples.draw_rotated", lambda axes, module, data, *_: drawn.extend(data.labels)
    )
    save_rotated(tmp_path / "rotated.png", torch.nn.Identity(), data, class_names, **options)
    return figures[0], [int(label) for label in drawn]


def test_the_title_says_how_the_training_images_were_moved(tmp_path, monkeypatch):
    data = LabelledImages(torch.rand(4, 1, 8, 8), torch.arange(4) % 2)
    figure, _ = saved_figure(tmp_path, monkeypatch, data, ("a", "b"), trained_on="rotated")
    assert "(trained on rotated images)" in figure.get_suptitle()


def test_of_many_classes_the_most_frequent_are_drawn(tmp_path, monkeypatch):
    frequent = torch.arange(300, 300 + MAX_EXAMPLE_CLASSES)
    labels = torch.cat([torch.arange(600), frequent.flip(0)])
    data = LabelledImages(torch.rand(len(labels), 1, 8, 8), labels)
    figure, drawn = saved_figure(tmp_path, monkeypatch, data, [f"class {number}" for number in range(600)])
    assert drawn == frequent.tolist()
    assert f"{MAX_EXAMPLE_CLASSES} of 600 classes drawn" in figure.get_suptitle()
    assert "rotated test images (trained on upright images)" in figure.get_suptitle()
    assert max(figure.get_size_inches()) < 20


def test_of_few_classes_all_are_drawn_also_if_some_have_no_images(tmp_path, monkeypatch):
    data = LabelledImages(torch.rand(9, 1, 8, 8), torch.tensor([0, 0, 0, 2, 2, 2, 2, 2, 2]))
    figure, drawn = saved_figure(tmp_path, monkeypatch, data, ("a", "b", "c"), part="validation")
    assert drawn == [0, 0, 2, 2]
    assert "classes drawn" not in figure.get_suptitle()
    assert "rotated validation images" in figure.get_suptitle()


@pytest.mark.parametrize(("size", "rows"), [(8, 4), (512, 4), (1400, 1)])
def test_large_images_are_drawn_in_fewer_rows(tmp_path, monkeypatch, size, rows):
    images = torch.zeros(1, 1, size, size).expand(4, -1, -1, -1)
    _, drawn = saved_figure(tmp_path, monkeypatch, LabelledImages(images, torch.arange(4)), tuple("abcd"))
    assert len(drawn) == rows
    assert rows == 1 or rows * len(EXAMPLE_ANGLES) * size**2 <= MAX_EXAMPLE_VALUES


def test_no_images_are_an_error(tmp_path):
    none = LabelledImages(torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="validation image"):
        save_rotated(tmp_path / "rotated.png", torch.nn.Identity(), none, ("a", "b"), part="validation")


def test_any_class_name_is_drawn_and_captions_do_not_overlap(tmp_path):
    names = ("$x^{$", "a\nb\x1b", "caf\udce9", "x" * 10_000, "", "\ud800", "👩", "_a")
    axes = Figure(figsize=(7, 7), layout="constrained").add_subplot()
    data = LabelledImages(torch.rand(8, 1, 28, 28), torch.arange(8))
    for label in range(8):
        network = TIGraNet("SC[2,2]-S[1]", 8).eval()
        torch.nn.init.zeros_(network.classifier[-1].weight)
        network.classifier[-1].bias.data = 10 * torch.nn.functional.one_hot(torch.tensor(label), 8).float()
        save_rotated(tmp_path / "rotated.png", network, data.take([0]), names)
    draw_rotated(axes, network, data, ("x" * 100,) * 8, EXAMPLE_ANGLES)
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text().startswith("x")][: len(EXAMPLE_ANGLES)]
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))


def test_long_class_names_are_written_on_several_lines_below_their_image(tmp_path, monkeypatch):
    names = ("appendicularian_s_shape", "hydromedusae_narco_young", "copepod_calanoid_eggs")
    data = LabelledImages(torch.rand(3, 1, 28, 28), torch.arange(3))
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    save_rotated(tmp_path / "rotated.png", TIGraNet("SC[2,2]-S[1]", 3).eval(), data, names)
    (axes,) = figures[0].axes
    figures[0].draw_without_rendering()
    captions = [text for text in axes.texts if not text.get_text().endswith("°")]
    assert len(captions) == 6 * len(EXAMPLE_ANGLES) // 2
    assert {caption.get_text().removesuffix(" ✗").replace("\n", "") for caption in captions} <= set(names)
    assert captions[0].get_fontsize() > 5
    frames = [frame.get_window_extent() for frame in axes.patches]
    for number, caption in enumerate(captions):
        box = caption.get_window_extent()
        assert box.y1 <= frames[number].y0
        below = number + len(EXAMPLE_ANGLES)
        assert below >= len(frames) or box.y0 >= frames[below].y1
