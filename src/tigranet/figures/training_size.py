"""Accuracy on rotated images against the number of training images, a line a method."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from tigranet.evaluation.accuracy import Accuracy
from tigranet.figures.svg import STYLE, save_both
from tigranet.reproduction.experiment import TableSpec
from tigranet.reproduction.render import of_row, over_seeds
from tigranet.reproduction.results_file import Record

NETWORKS: tuple[dict[str, Any], ...] = (
    {"color": "#0072b2", "marker": "o"},
    {"color": "#56b4e9", "marker": "^"},
    {"color": "#000000", "marker": "D"},
    {"color": "#d55e00", "marker": "s"},
    {"color": "#009e73", "marker": "v"},
    {"color": "#e69f00", "marker": "X"},
    {"color": "#cc79a7", "marker": "P"},
)
"""One after the other; told apart by colour-blind readers, and in grey by their marks."""
TURNED: dict[str, Any] = {"linestyle": (0, (4, 2)), "markerfacecolor": "white"}
"""Trained on turned images: dashed and hollow, in the colour of the network that was not."""
TICKS = (0.0, 20.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.8, 99.9)
"""Per cent."""
MARGIN = 0.1
"""Above the best and below the worst, at least, as the logarithm of what is wrong."""
ALL_RIGHT = 99.95
"""Per cent, or more; the logarithm of nothing wrong at all is not drawn."""


class Curve(NamedTuple):
    """A method's accuracy, mean and deviation over seeds, at each number of training images."""

    name: str
    style: dict[str, Any]
    at: list[int]
    seen: list[Accuracy]


def curves(table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> list[Curve]:
    """Those of the methods of ``table`` that were measured, in its order."""
    styles: dict[tuple[str, str], dict[str, Any]] = {}
    found: dict[str, Curve] = {}
    for row in table.rows:
        style = styles.setdefault((row.method, row.architecture), NETWORKS[len(styles) % len(NETWORKS)])
        style = style | (TURNED if row.recipe.get("turned") else {})
        runs = of_row(row, records, epochs)
        if (seen := over_seeds(runs, "rotated")) is not None:
            curve = found.setdefault(row.kind, Curve(row.kind, style, [], []))
            curve.at.append(runs[0]["images"])
            curve.seen.append(seen)
    return list(found.values())


def _height(accuracy: float | NDArray[np.floating]) -> Any:
    """Where an accuracy in per cent is drawn: as high as its wrong answers are few."""
    return -np.log(100 - np.minimum(accuracy, ALL_RIGHT))


def _accuracy(height: float | NDArray[np.floating]) -> Any:
    """What is drawn at a height.

    >>> float(_accuracy(_height(90.0)))
    90.0
    """
    return 100 - np.exp(-np.asarray(height))


def draw_by_images(axes: Axes, lines: Sequence[Curve]) -> None:
    """Per cent against images. Both scales are logarithmic, that of the accuracy in what is wrong: half as many wrong
    answers are the same step anywhere. The band is one standard deviation to each side. The names stand to the right,
    in the order in which the lines end."""
    for line in lines:
        mean = [seen.mean for seen in line.seen]
        style: dict[str, Any] = {"linewidth": 1.8, "markersize": 5, "markeredgewidth": 1.3, "clip_on": False}
        axes.plot(line.at, mean, label=line.name, zorder=3, **style, **line.style)
        low, high = ([seen.mean + sign * seen.std for seen in line.seen] for sign in (-1, 1))
        axes.fill_between(line.at, low, high, color=line.style["color"], alpha=0.15, linewidth=0, zorder=2)
    counts = sorted({count for line in lines for count in line.at})
    axes.set_yscale("function", functions=(_height, _accuracy))
    seen = [_height(seen.mean) for line in lines for seen in line.seen]
    below = [tick for tick in TICKS if _height(tick) <= min(seen) - MARGIN]
    above = [tick for tick in TICKS if _height(tick) >= max(seen) + MARGIN]
    low, high = _accuracy(min(seen) - MARGIN), _accuracy(max(seen) + MARGIN)
    axes.set_ylim(max(below, default=low), min(above, default=high))  # a tick each, where there is one
    axes.set(xscale="log", xlabel="training images", ylabel="rotated test images, accuracy in %")
    axes.set_title("mean over the seeds, and one standard deviation to each side", fontsize=9, color="0.35", loc="left")
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda accuracy, _: f"{accuracy:g}"))
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    ends = {line.name: line.seen[-1].mean for line in lines}
    by_end = sorted(axes.get_lines(), key=lambda line: -ends[str(line.get_label())])
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "frameon": False, "handlelength": 3}
    axes.legend(handles=by_end, labelspacing=0.7, **beside)


def save_by_images(path: Path, table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> list[Path]:
    """The curves of ``table`` as ``path`` with .png and with .svg; no file where nothing was measured."""
    lines = curves(table, records, epochs)
    if not lines:
        return []
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.4), layout="constrained")
        draw_by_images(figure.add_subplot(), lines)
        return save_both(figure, path)
