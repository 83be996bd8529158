import io
from dataclasses import replace

import pytest
import torch
from PIL import Image
from rich.console import Console

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.workflows.draw_examples import draw_rotated_examples

pytestmark = pytest.mark.usefixtures("whole_results")
NONE = LabelledImages(torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.int64))


@pytest.fixture
def data():
    images = LabelledImages(torch.rand(4, 1, 8, 8), torch.arange(4) % 2)
    return DataSet("[/]", ("a", "b"), images, images, images)


@pytest.fixture
def network():
    return TIGraNet("SC[2,2]-S[1]", 2).eval()


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


def test_the_picture_is_the_only_file(network, data, tmp_path, console):
    assert draw_rotated_examples(tmp_path / "rotated.png", network, data, console) == tmp_path / "rotated.png"
    assert [path.name for path in tmp_path.iterdir()] == ["rotated.png"]
    with Image.open(tmp_path / "rotated.png") as image:
        image.load()
    assert console.file.getvalue() == ""


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(28, "No space left on device"), RuntimeError("[/] font"), ImportError("matplotlib")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("with_console", [True, False])
def test_whatever_goes_wrong_leads_to_one_notice_and_no_picture(
    network, data, tmp_path, console, monkeypatch, error, with_console
):
    """Neither half a picture nor the picture of an older model stays."""

    def fail(path, *_):
        path.write_bytes(b"half a picture")
        raise error

    monkeypatch.setattr("tigranet.figures.rotated_examples.save_rotated", fail)
    (tmp_path / "rotated.png").write_bytes(b"an older picture")
    drawn = draw_rotated_examples(tmp_path / "rotated.png", network, data, console if with_console else None)
    assert drawn is None
    assert not list(tmp_path.iterdir())
    if with_console:
        (line,) = console.file.getvalue().splitlines()
        assert line.startswith("no picture")
        assert type(error).__name__ in line
        assert str(error) in line


def test_an_interruption_is_not_a_drawing_error(network, data, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tigranet.figures.rotated_examples.save_rotated", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw_rotated_examples(tmp_path / "rotated.png", network, data)


def test_validation_images_are_drawn_where_there_are_no_test_images(network, data, tmp_path, console, monkeypatch):
    drawn = []
    monkeypatch.setattr("tigranet.figures.rotated_examples.save_rotated", lambda *arguments: drawn.append(arguments))
    monkeypatch.setattr("os.replace", lambda *_: None)
    draw_rotated_examples(tmp_path / "rotated.png", network, replace(data, test=NONE), console)
    assert drawn[0][2] is data.validation
    assert drawn[0][5] == "validation"
    nothing = replace(data, test=NONE, validation=NONE)
    assert draw_rotated_examples(tmp_path / "rotated.png", network, nothing, console) is None
    assert "no test images" in console.file.getvalue()
