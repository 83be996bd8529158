import base64
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.figures.svg import as_data_uri, as_svg


def test_it_is_one_svg_element_with_letters_and_a_title():
    svg = as_svg(lambda axes: axes.set_title("5 < 6 & 歩く"), (3.0, 2.0), "a <title>")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.get("role") == "img"
    assert "5 < 6 & 歩く" in "".join(root.itertext())
    assert "a <title>" in "".join(root.itertext())
    assert "<metadata" not in svg


def test_the_same_figure_is_the_same_text():
    def draw(axes):
        axes.plot([1, 2], [3, 5], clip_on=True)

    assert as_svg(draw, (3.0, 2.0), "a") == as_svg(draw, (3.0, 2.0), "a")


@pytest.mark.parametrize(("maps", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (5, "L")])
def test_an_image_comes_back_from_its_address(maps, mode):
    image = torch.rand(maps, 4, 6)
    start, data = as_data_uri(image).split(",")
    assert start == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.mode == mode
        wanted = image.permute(1, 2, 0) if maps == 3 else image.mean(0)
        assert np.asarray(picture) / 255 == pytest.approx(wanted.numpy(), abs=1 / 500)
