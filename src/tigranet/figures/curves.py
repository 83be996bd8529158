"""Curves of networks side by side: accuracy and confidence against angle or shift, change against angle."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

OURS, RIVAL, OURS_TOO = (
    {"color": "#0072b2", "linestyle": "-", "marker": "o"},
    {"color": "#d55e00", "linestyle": "--", "marker": "s"},
    {"color": "#56b4e9", "linestyle": ":", "marker": "^"},
)
"""Told apart by colour-blind readers, and in grey by their dashes and marks."""
STYLES: tuple[dict[str, str], ...] = (
    OURS,
    RIVAL,
    {"color": "#009e73", "linestyle": "-.", "marker": "D"},
    {"color": "#cc79a7", "linestyle": ":", "marker": "v"},
    {"color": "#000000", "linestyle": "--", "marker": "x"},
    OURS_TOO,
)
"""For as many networks in one picture; further ones begin again."""
ROUNDING = 1e-8
"""Changes below this are drawn at it: they are rounding, and a logarithm has no zero."""


class Line(NamedTuple):
    """One network's values at each point."""

    name: str
    style: dict[str, str]
    at: Sequence[float]
    values: Sequence[float]


def draw_against_angle(axes: Axes, lines: Sequence[Line], what: str, chance: float | None = None) -> None:
    """Per cent against degrees, quarter turns marked."""
    _quarter_turns(axes)
    _draw_per_cent(axes, lines, what, chance)


def draw_against_shift(axes: Axes, lines: Sequence[Line], what: str, chance: float | None = None) -> None:
    """Per cent against pixels."""
    _draw_per_cent(axes, lines, what, chance)
    axes.set(xlabel="shift, pixels", xlim=(0, max(1, *lines[0].at)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_change(axes: Axes, lines: Sequence[Line]) -> None:
    """The invariance error against degrees, on a logarithmic scale: down at the bottom, only rounding is left.

    At 0 and 360 degrees nothing is turned and nothing is drawn.
    """
    _quarter_turns(axes)
    for line in lines:
        turned = [(at, max(value, ROUNDING)) for at, value in zip(line.at, line.values, strict=True) if at % 360]
        _plot(axes, line._replace(at=[at for at, _ in turned], values=[value for _, value in turned]))
    axes.set_yscale("log")
    axes.set_ylim(ROUNDING / 2, max(2.0, 2 * max(max(line.values) for line in lines)))
    axes.set_ylabel("largest change, part of range")
    _legend(axes)


def draw_mean_change(axes: Axes, lines: Sequence[Line]) -> None:
    """The relative change of the logits against degrees, on a scale that begins at 0: an invariant network lies there,
    and one that is invariant by quarter turns touches it four times."""
    _quarter_turns(axes)
    for line in lines:
        _plot(axes, line)
    axes.set(ylim=(0, 1.05 * max(1e-6, *(max(line.values) for line in lines))), ylabel="relative change of the logits")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    _legend(axes)


def _draw_per_cent(axes: Axes, lines: Sequence[Line], what: str, chance: float | None) -> None:
    for line in lines:
        _plot(axes, line)
    if chance is not None:
        axes.axhline(chance, color="0.5", linewidth=1.2, linestyle=(0, (1, 2)), label="guessing", zorder=2)
    axes.set(ylim=(0, 103), ylabel=what)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    _legend(axes)


def _plot(axes: Axes, line: Line) -> None:
    style: dict[str, Any] = line.style | {"markersize": 3.5, "linewidth": 1.8, "clip_on": False, "zorder": 3}
    axes.plot(line.at, line.values, label=line.name, **style)


def _quarter_turns(axes: Axes) -> None:
    for degrees in range(0, 361, 90):
        axes.axvline(degrees, color="0.86", linewidth=1.2, zorder=0)
    axes.set(xlim=(0, 360), xticks=range(0, 361, 45), xlabel="angle, degrees")


def _legend(axes: Axes) -> None:
    """Above the axes, where it hides nothing."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, borderaxespad=0.3, handlelength=2.2,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
