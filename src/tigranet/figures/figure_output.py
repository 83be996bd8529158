"""Figures as PNG and SVG files, figures as SVG text inside a web page, and images as data URIs."""

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

from tigranet.atomic_files import atomic_binary_write

FIGURE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, so it can be searched and the browser provides fonts for all scripts
    "svg.hashsalt": "tigranet",  # makes element ids, and so the SVG text, reproducible
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": "0.35",
    "axes.labelcolor": "0.15",
}
"""Matplotlib settings of figures that are saved as SVG."""


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Suppress Matplotlib's warning about characters that its font does not have.

    Class names may use any script. A PNG shows a box for each missing character. An SVG contains the character itself,
    and the browser has a font for it.

    Yields:
        Nothing; the warning is suppressed inside the ``with`` block.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def save_png_and_svg(figure: Figure, path: Path, dpi: int = 200) -> list[Path]:
    """Save a figure as PNG and as SVG. Equal figures give byte-identical files.

    Each file appears only when it is complete.

    Args:
        figure: The figure.
        path: Path of the files without their suffix.
        dpi: Resolution of the PNG, in dots per inch.

    Returns:
        The paths of the PNG and of the SVG.
    """
    png, svg = (path.with_name(f"{path.name}{suffix}") for suffix in (".png", ".svg"))
    with matplotlib.rc_context({"svg.hashsalt": FIGURE_STYLE["svg.hashsalt"]}), ignore_missing_glyphs():
        with atomic_binary_write(png) as file:
            figure.savefig(file, dpi=dpi, format="png")
        with atomic_binary_write(svg) as file:
            figure.savefig(file, dpi=dpi, format="svg", metadata={"Date": None})  # a date would change at every call
    return [png, svg]


def inline_svg(draw: Callable[[Axes], None], size: tuple[float, float], title: str) -> str:
    """Draw a figure and return it as an ``<svg>`` element for an HTML page.

    Args:
        draw: Function that draws on the axes it receives.
        size: Width and height of the figure in inches.
        title: Title for screen readers.

    Returns:
        The text of one ``<svg>`` element.
    """
    file = io.StringIO()
    with matplotlib.rc_context(FIGURE_STYLE), ignore_missing_glyphs():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Title": title})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace("<svg ", '<svg role="img" ', 1)
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)


def png_data_uri(image: Float[Tensor, "maps height width"]) -> str:
    """Encode an image as a ``data:`` URI that contains a PNG.

    Args:
        image: Image with values in [0, 1]. Three channels are shown in colour; the mean of any other number of
            channels is shown in grey.

    Returns:
        The URI.
    """
    pixels = image if len(image) == 3 else image.mean(0, keepdim=True)
    levels = np.rint(pixels.clamp(0, 1).permute(1, 2, 0).numpy() * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels if levels.shape[-1] == 3 else levels[..., 0]).save(file, format="png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
