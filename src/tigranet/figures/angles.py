"""How far networks are from invariant, at every angle: the change of their logits, and their accuracy."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tigranet.evaluation.curves import Invariance
from tigranet.figures.curves import STYLES, Line, draw_against_angle, draw_mean_change
from tigranet.figures.svg import STYLE, save_both


def draw_invariance(
    change: Axes, accuracy: Axes | None, found: Mapping[str, Invariance], chance: float | None = None
) -> None:
    """The networks by name: on the first axes the change of their logits, on the second the accuracy of those that
    have one. A network has the same line on both."""
    styles = dict(zip(found, cycle(STYLES), strict=False))
    changes = [Line(name, styles[name], seen.at, seen.change) for name, seen in found.items()]
    draw_mean_change(change, changes)
    if accuracy is not None:
        asked = {name: seen.accuracy for name, seen in found.items() if seen.accuracy is not None}
        lines = [Line(name, styles[name], found[name].at, values) for name, values in asked.items()]
        draw_against_angle(accuracy, lines, "accuracy, %", chance)


def save_invariance(folder: Path, found: Mapping[str, Invariance], chance: float | None = None) -> list[Path]:
    """The picture as PNG and as SVG; the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 1 + any(seen.accuracy is not None for seen in found.values())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5 * count, 3.6), layout="constrained")
        axes = figure.subplots(1, count, squeeze=False)[0]
        draw_invariance(axes[0], axes[1] if count > 1 else None, found, chance)
        return save_both(figure, folder / "angles", dpi=160)
