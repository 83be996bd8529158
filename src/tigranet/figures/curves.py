"""Curves of several networks against rotation angle or shift: accuracy, confidence, and change of the output."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tigranet.figures.names import shorten

NETWORK_STYLE, BASELINE_STYLE, SECOND_NETWORK_STYLE = (
    {"color": "#0072b2", "linestyle": "-", "marker": "o"},
    {"color": "#d55e00", "linestyle": "--", "marker": "s"},
    {"color": "#56b4e9", "linestyle": ":", "marker": "^"},
)
"""Line styles that differ in colour for colour-blind readers, and in dashes and markers when printed in grey."""
LINE_STYLES: tuple[dict[str, str], ...] = (
    NETWORK_STYLE,
    BASELINE_STYLE,
    {"color": "#009e73", "linestyle": "-.", "marker": "D"},
    {"color": "#cc79a7", "linestyle": ":", "marker": "v"},
    {"color": "#000000", "linestyle": "--", "marker": "x"},
    SECOND_NETWORK_STYLE,
)
"""Styles of the networks in one figure. They repeat if there are more networks."""
MAX_LEGEND_NAME_LENGTH = 32
"""Names of networks are shortened to this many characters, so that one fits above a figure of 5 inches."""
LEGEND_LENGTH, LINE_LENGTH = 54, 6
"""Number of characters that fit above a figure of 5 inches, and the width of the line before a name in characters."""
MIN_CHANGE = 1e-8
"""Smaller changes are rounding errors. They are drawn at this value, because a logarithmic axis has no zero."""


class Line(NamedTuple):
    """One line of a figure: the values of one network."""

    name: str
    style: dict[str, str]
    at: Sequence[float]
    """Positions on the horizontal axis: degrees or pixels."""
    values: Sequence[float]


def draw_against_angle(axes: Axes, lines: Sequence[Line], ylabel: str, chance: float | None = None) -> None:
    """Draw percentages against the rotation angle.

    Args:
        axes: Axes to draw on.
        lines: Values in per cent against degrees, one line per network.
        ylabel: Label of the vertical axis.
        chance: Chance-level accuracy in per cent, drawn as a horizontal line.
    """
    _draw_angle_axis(axes)
    _draw_percentages(axes, lines, ylabel, chance)


def draw_against_shift(axes: Axes, lines: Sequence[Line], ylabel: str, chance: float | None = None) -> None:
    """Draw percentages against the shift in pixels.

    Args:
        axes: Axes to draw on.
        lines: Values in per cent against pixels, one line per network.
        ylabel: Label of the vertical axis.
        chance: Chance-level accuracy in per cent, drawn as a horizontal line.
    """
    _draw_percentages(axes, lines, ylabel, chance)
    axes.set(xlabel="shift (pixels)", xlim=(0, max(1, *lines[0].at)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_max_change(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw the invariance error against the rotation angle on a logarithmic scale.

    The bottom of the scale is the rounding error of 32-bit numbers. At 0 and 360 degrees the image does not change, so
    these angles are left out.

    Args:
        axes: Axes to draw on.
        lines: Invariance errors against degrees, one line per measured output.
    """
    _draw_angle_axis(axes)
    for line in lines:
        points = [(at, max(value, MIN_CHANGE)) for at, value in zip(line.at, line.values, strict=True) if at % 360]
        draw_line(axes, line._replace(at=[at for at, _ in points], values=[value for _, value in points]))
    axes.set_yscale("log")
    axes.set_ylim(MIN_CHANGE / 2, max(2.0, 2 * max(max(line.values) for line in lines)))
    axes.set_ylabel("largest change / range of values")
    draw_legend(axes)


def draw_mean_change(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw the relative change of the logits against the rotation angle, on a scale that starts at 0.

    The line of an invariant network lies at 0. The line of a network that is invariant to quarter turns touches 0 at
    every multiple of 90 degrees.

    Args:
        axes: Axes to draw on.
        lines: Relative changes against degrees, one line per network.
    """
    _draw_angle_axis(axes)
    for line in lines:
        draw_line(axes, line)
    axes.set(ylim=(0, 1.05 * max(1e-6, *(max(line.values) for line in lines))), ylabel="relative change of the logits")
    _draw_horizontal_grid(axes)
    draw_legend(axes)


def legend_columns(names: Sequence[str]) -> int:
    """Return how many names fit side by side above a figure of 5 inches.

    Args:
        names: The names in the legend.

    Returns:
        3 for short names, 1 for long ones.

    Example:
        >>> legend_columns(["TIGraNet", "chance level"]), legend_columns(["a network with a long name"] * 3)
        (3, 1)
    """
    for columns in (3, 2):
        lengths = [
            max(map(len, column), default=0) for column in np.array_split(np.array(names, dtype=object), columns)
        ]
        if sum(lengths) + LINE_LENGTH * columns <= LEGEND_LENGTH:
            return columns
    return 1


def _draw_percentages(axes: Axes, lines: Sequence[Line], ylabel: str, chance: float | None) -> None:
    for line in lines:
        draw_line(axes, line)
    if chance is not None:
        axes.axhline(chance, color="0.5", linewidth=1.2, linestyle=(0, (1, 2)), label="chance level", zorder=2)
    axes.set(ylim=(0, 103), ylabel=ylabel)
    _draw_horizontal_grid(axes)
    draw_legend(axes)


def draw_line(axes: Axes, line: Line) -> None:
    """Draw one line with its style and markers.

    Args:
        axes: Axes to draw on.
        line: The line.
    """
    style: dict[str, Any] = line.style | {"markersize": 3.5, "linewidth": 1.8, "clip_on": False, "zorder": 3}
    name = shorten(line.name, MAX_LEGEND_NAME_LENGTH)
    label = f" {name}" if name.startswith("_") else name  # Matplotlib leaves out labels that start with an underscore
    axes.plot(line.at, line.values, label=label, **style)


def _draw_angle_axis(axes: Axes) -> None:
    """Label the horizontal axis in degrees and mark the quarter turns."""
    for degrees in range(0, 361, 90):
        axes.axvline(degrees, color="0.86", linewidth=1.2, zorder=0)
    axes.set(xlim=(0, 360), xticks=range(0, 361, 45), xlabel="rotation angle (degrees)")


def _draw_horizontal_grid(axes: Axes) -> None:
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def draw_legend(axes: Axes) -> None:
    """Draw the legend above the axes, where it covers no data.

    Args:
        axes: Axes with lines that have labels.
    """
    axes.spines[["top", "right"]].set_visible(False)
    names = [str(label) for label in axes.get_legend_handles_labels()[1]]
    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=legend_columns(names), frameon=False, borderaxespad=0.3,
        handlelength=2.2, columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name may contain dollar signs
