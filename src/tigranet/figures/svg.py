"""A figure as files, or as a piece of SVG to stand in a page; and an image as an address that holds it."""

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # letters stay letters: they can be searched, and the browser has fonts for all scripts
    "svg.hashsalt": "tigranet",  # the same figure is the same text
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": "0.35",
    "axes.labelcolor": "0.15",
}


@contextmanager
def any_letters() -> Iterator[None]:
    """Within, names may have letters that the font has not: in a PNG a box stands for them, in SVG the letter itself,
    for which the browser has a font."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def save_both(figure: Figure, path: Path, dpi: int = 200) -> list[Path]:
    """The figure as ``path`` with .png and with .svg; the same figure is the same files."""
    written = [path.with_name(f"{path.name}{suffix}") for suffix in (".png", ".svg")]
    with matplotlib.rc_context({"svg.hashsalt": STYLE["svg.hashsalt"]}), any_letters():
        for file, about in zip(written, ({}, {"Date": None}), strict=True):
            figure.savefig(file, dpi=dpi, metadata=about)
    return written


def as_svg(draw: Callable[[Axes], None], size: tuple[float, float], title: str) -> str:
    """What ``draw`` draws on axes of a figure of ``size`` inches; ``title`` is read to those who cannot see it."""
    file = io.StringIO()
    with matplotlib.rc_context(STYLE), any_letters():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Title": title})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace("<svg ", '<svg role="img" ', 1)
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)


def as_data_uri(image: Float[Tensor, "maps height width"]) -> str:
    """A PNG of an image in [0, 1]: three channels in colour, the mean of any other number in grey."""
    pixels = image if len(image) == 3 else image.mean(0, keepdim=True)
    whole = np.rint(pixels.clamp(0, 1).permute(1, 2, 0).numpy() * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(whole if whole.shape[-1] == 3 else whole[..., 0]).save(file, format="png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
