import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.data.augment.rigid import rotate
from tigranet.figures.rotated_examples import draw_rotated, save_rotated


def test_a_picture_is_drawn(trained, mnist_012, tmp_path):
    save_rotated(tmp_path / "rotated.png", trained, mnist_012.test, mnist_012.class_names)
    with Image.open(tmp_path / "rotated.png") as picture:
        assert min(picture.size) > 500
        assert len(picture.convert("L").getcolors()) > 50


def drawn(images, outside, angles=(0.0, 45.0)):
    """The pictures as they are shown: of each image, upright and turned."""
    axes = Figure().add_subplot()
    net = TIGraNet("SC[2,2]-S[1]", 2, in_maps=images.shape[1]).eval()
    data = LabelledImages(images, torch.zeros(len(images), dtype=torch.int64))
    draw_rotated(axes, net, data, ("a", "b"), angles, outside)
    return [np.asarray(picture.get_array()) for picture in axes.get_images()]


def test_digits_are_dark_on_white_and_nothing_comes_from_outside():
    upright, turned = drawn(torch.full((1, 1, 8, 8), 0.75), "zeros")
    assert upright == pytest.approx(np.full((8, 8), 0.25))
    assert turned[0, 0] == 1


def test_photographs_are_shown_in_their_colours_with_their_mirror_images():
    images = torch.rand(1, 3, 8, 8)
    upright, turned = drawn(images, "reflection")
    assert upright == pytest.approx(images[0].permute(1, 2, 0).numpy(), abs=1e-6)
    wanted = rotate(images, torch.tensor([45.0]), padding="reflection")[0].permute(1, 2, 0)
    assert turned == pytest.approx(wanted.numpy(), abs=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_a_pale_grey_photograph_is_stretched_the_same_at_every_angle(channels):
    image = torch.linspace(0.4, 0.5, 400).reshape(1, 1, 20, 20).expand(-1, channels, -1, -1).clone()
    upright, turned = drawn(image, "reflection", (0.0, 180.0))
    assert (upright[0, 0], upright[-1, -1]) == (0, 1)
    assert np.median(upright) == pytest.approx(0.5, abs=0.01)
    assert turned == pytest.approx(upright[::-1, ::-1], abs=1e-3)


def test_an_image_of_one_grey_is_shown_as_it_is():
    upright, _ = drawn(torch.full((1, 1, 8, 8), 0.25), "reflection")
    assert upright == pytest.approx(np.full((8, 8), 0.25))


def test_class_names_that_the_font_lacks_are_drawn_without_a_warning(tmp_path):
    data = LabelledImages(torch.rand(4, 1, 8, 8), torch.arange(4) % 2)
    save_rotated(tmp_path / "rotated.png", TIGraNet("SC[2,2]-S[1]", 2).eval(), data, ("日本", "語"), "reflection")
    assert (tmp_path / "rotated.png").stat().st_size > 1000
