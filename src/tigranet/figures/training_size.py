"""Accuracy on rotated images against the number of training images, one line per method."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from tigranet.evaluation.accuracy import Accuracy
from tigranet.figures.figure_output import FIGURE_STYLE, save_png_and_svg

NETWORK_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072b2", "marker": "o"},
    {"color": "#56b4e9", "marker": "^"},
    {"color": "#000000", "marker": "D"},
    {"color": "#d55e00", "marker": "s"},
    {"color": "#009e73", "marker": "v"},
    {"color": "#e69f00", "marker": "X"},
    {"color": "#cc79a7", "marker": "P"},
)
"""One style per network. They differ in colour for colour-blind readers, and in markers when printed in grey."""
ROTATED_TRAINING_STYLE: dict[str, Any] = {"linestyle": (0, (4, 2)), "markerfacecolor": "white"}
"""Added to the style of a network that is trained on rotated images: a dashed line with hollow markers."""
ACCURACY_TICKS = (0.0, 20.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.8, 99.9)
"""Ticks of the accuracy axis, in per cent."""
MIN_MARGIN = 0.1
"""Minimum distance of the data to the top and bottom of the axes, as a difference of log error rates."""
CROWDED_COUNT = 1_000
"""From this number of images on, labels of the axis are wide, and are tilted if two numbers are close together."""
MAX_DRAWN_ACCURACY = 99.95
"""Higher accuracies are drawn at this value, in per cent, because the logarithm of a zero error rate is infinite."""


class TrainingSizeCurve(NamedTuple):
    """The accuracy of one method for several numbers of training images."""

    name: str
    style: dict[str, Any]
    training_images: list[int]
    accuracies: list[Accuracy]
    """Mean and standard deviation over seeds, for each number of training images."""


def draw_training_size(axes: Axes, curves: Sequence[TrainingSizeCurve]) -> None:
    """Draw accuracy against the number of training images.

    Both axes are logarithmic. The accuracy axis is logarithmic in the error rate, so halving the number of errors is
    the same distance everywhere. The band around a line is one standard deviation. The legend is on the right and lists
    the methods in the order in which their lines end.

    Args:
        axes: Axes to draw on.
        curves: At least one curve.
    """
    for curve in curves:
        mean = [accuracy.mean for accuracy in curve.accuracies]
        style: dict[str, Any] = {"linewidth": 1.8, "markersize": 5, "markeredgewidth": 1.3, "clip_on": False}
        axes.plot(curve.training_images, mean, label=curve.name, zorder=3, **style, **curve.style)
        low, high = ([accuracy.mean + sign * accuracy.std for accuracy in curve.accuracies] for sign in (-1, 1))
        axes.fill_between(
            curve.training_images, low, high, color=curve.style["color"], alpha=0.15, linewidth=0, zorder=2
        )
    axes.set(xscale="log", xlabel="number of training images", ylabel="accuracy on rotated test images (%)")
    axes.set_title("mean ± one standard deviation over seeds", fontsize=9, color="0.35", loc="left")
    _scale_accuracy_axis(axes, curves)
    counts = sorted({count for curve in curves for count in curve.training_images})
    axes.xaxis.set_major_locator(FixedLocator(counts))
    if any(smaller >= CROWDED_COUNT and larger < 3 * smaller for smaller, larger in pairwise(counts)):
        axes.tick_params(axis="x", rotation=30)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    last_accuracy = {curve.name: curve.accuracies[-1].mean for curve in curves}
    handles = sorted(axes.get_lines(), key=lambda line: -last_accuracy[str(line.get_label())])
    position: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    axes.legend(handles=handles, labelspacing=0.7, frameon=False, handlelength=3, **position)


def save_training_size(path: Path, curves: Sequence[TrainingSizeCurve]) -> list[Path]:
    """Save the figure of :func:`draw_training_size`, as PNG and as SVG.

    Args:
        path: Path of the files without their suffix.
        curves: The curves.

    Returns:
        The paths of the files. It is empty, and no file is written, if there are no curves.
    """
    if not curves:
        return []
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(8, 4.4), layout="constrained")
        draw_training_size(figure.add_subplot(), curves)
        return save_png_and_svg(figure, path)


def _scale_accuracy_axis(axes: Axes, curves: Sequence[TrainingSizeCurve]) -> None:
    """Make the accuracy axis logarithmic in the error rate, from a tick below all data to a tick above all data."""
    axes.set_yscale("function", functions=(_to_height, _to_accuracy))
    heights = [_to_height(accuracy.mean) for curve in curves for accuracy in curve.accuracies]
    low, high = min(heights) - MIN_MARGIN, max(heights) + MIN_MARGIN
    ticks_below = [tick for tick in ACCURACY_TICKS if _to_height(tick) <= low]
    ticks_above = [tick for tick in ACCURACY_TICKS if _to_height(tick) >= high]
    axes.set_ylim(max(ticks_below, default=_to_accuracy(low)), min(ticks_above, default=_to_accuracy(high)))
    axes.yaxis.set_major_locator(FixedLocator(ACCURACY_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda accuracy, _: f"{accuracy:g}"))


def _to_height(accuracy: float | NDArray[np.floating]) -> Any:
    """Convert an accuracy in per cent to a position on the axis: minus the logarithm of the error rate."""
    return -np.log(100 - np.minimum(accuracy, MAX_DRAWN_ACCURACY))


def _to_accuracy(height: float | NDArray[np.floating]) -> Any:
    """Convert a position on the axis to an accuracy in per cent: the inverse of :func:`_to_height`.

    >>> float(_to_accuracy(_to_height(90.0)))
    90.0
    """
    return 100 - np.exp(-np.asarray(height))
