import base64
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from tigranet.figures.figure_output import inline_svg, png_data_uri, save_png_and_svg


def test_the_result_is_one_svg_element_with_its_text_and_title():
    svg = inline_svg(lambda axes: axes.set_title("5 < 6 & 歩く"), (3.0, 2.0), "a <title>")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.get("role") == "img"
    assert "5 < 6 & 歩く" in "".join(root.itertext())
    assert "a <title>" in "".join(root.itertext())
    assert "<metadata" not in svg


def test_equal_figures_give_equal_text():
    def draw(axes):
        axes.plot([1, 2], [3, 5], clip_on=True)

    assert inline_svg(draw, (3.0, 2.0), "a") == inline_svg(draw, (3.0, 2.0), "a")


def test_a_figure_is_saved_in_both_formats_and_a_name_with_a_dot_is_kept(tmp_path):
    figure = Figure(figsize=(3, 2))
    figure.add_subplot().set_title("title")
    paths = save_png_and_svg(figure, tmp_path / "v1.5", dpi=100)
    assert paths == [tmp_path / "v1.5.png", tmp_path / "v1.5.svg"]
    with Image.open(paths[0]) as image:
        assert image.size == (300, 200)
    assert ET.parse(paths[1]).getroot().tag.endswith("svg")


@pytest.mark.parametrize(("maps", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (5, "L")])
def test_decoding_a_data_uri_gives_the_image(maps, mode):
    image = torch.rand(maps, 4, 6)
    header, data = png_data_uri(image).split(",")
    assert header == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as decoded:
        assert decoded.mode == mode
        expected = image.permute(1, 2, 0) if maps == 3 else image.mean(0)
        assert np.asarray(decoded) / 255 == pytest.approx(expected.numpy(), abs=1 / 500)


def test_a_figure_that_cannot_be_drawn_leaves_the_older_files(tmp_path, monkeypatch):
    figure = Figure()
    older = [path.read_bytes() for path in save_png_and_svg(figure, tmp_path / "figure")]

    def write_half(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", write_half)
    with pytest.raises(OSError, match="No space left"):
        save_png_and_svg(figure, tmp_path / "figure")
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["figure.png", "figure.svg"]
    assert [path.read_bytes() for path in files] == older
