import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tigranet.data import UnreadableFile, read_letterboxed
from tigranet.data.standard_input import images_of_stream, is_image, standard_input

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")


def encoded(kind, side=9):
    file = io.BytesIO()
    Image.fromarray(np.full((side, side), 77, np.uint8)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("side", [9, 300])
def test_the_content_of_an_image_is_an_image(kind, side):
    content = encoded(kind, side)
    ((name, image),) = read_letterboxed(images_of_stream(io.BytesIO(content)), 9, False)
    assert name == Path("stdin")
    assert float(image.mean()) * 255 == pytest.approx(77, abs=2)
    assert is_image(content[:20])


@pytest.mark.parametrize(
    "content",
    [
        b"BMW/1.png\nb.png\n",
        b"BM.png\0b.png\0",
        b"GIF89a.gif\0b.gif\0",
        b"GIF87a\n",
        b"RIFF.png\nWEBP\n",
        b"II*.png\n",
        b"MM.png\0*\0",
        b"PNG/1.png\n",
    ],
)
def test_paths_that_begin_like_an_image_are_paths(content):
    items = list(images_of_stream(io.BytesIO(content)))
    separator = b"\0" if b"\0" in content else b"\n"
    assert items == [Path(name.decode()) for name in content.split(separator) if name]


def test_an_archive_says_what_to_do_and_a_damaged_image_is_reported(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3, 3)))
    (result,) = images_of_stream(io.BytesIO((tmp_path / "a.npz").read_bytes()))
    assert ".npz" in result.reason
    ((_, result),) = read_letterboxed(images_of_stream(io.BytesIO(encoded("PNG")[:40])), 9, False)
    assert isinstance(result, UnreadableFile)


def test_an_image_that_is_too_large_is_not_read_to_its_end(monkeypatch):
    for name in ("standard_input", "packed_image"):
        monkeypatch.setattr(f"tigranet.data.{name}.MAX_CONTENT_BYTES", 10_000)
    stream = io.BytesIO(encoded("PNG") + bytes(10**6))
    ((_, result),) = read_letterboxed(images_of_stream(stream), 9, False)
    assert "more than 10,000" in result.reason
    assert stream.tell() < 100_000


@pytest.mark.parametrize("stdin", [None, io.StringIO("a.png")])
def test_a_closed_standard_input_is_an_error(monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(ValueError, match="standard input is closed"):
        standard_input()
