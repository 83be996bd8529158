"""How the logits and the accuracy of networks depend on the rotation angle of the images."""

from collections.abc import Mapping
from itertools import cycle, islice
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tigranet.evaluation.curves import Invariance
from tigranet.figures.curves import (
    LINE_STYLES,
    MAX_LEGEND_NAME_LENGTH,
    Line,
    draw_against_angle,
    draw_mean_change,
    legend_columns,
)
from tigranet.figures.figure_output import FIGURE_STYLE, save_png_and_svg
from tigranet.figures.names import shorten

MAX_NETWORKS = 12
"""Largest number of networks in one figure. More lines could not be told apart."""


def draw_invariance(
    change_axes: Axes,
    accuracy_axes: Axes | None,
    measurements: Mapping[str, Invariance],
    chance: float | None = None,
) -> None:
    """Draw the change of the logits and the accuracy of several networks against the rotation angle.

    A network has the same line style on both axes. Only the first :data:`MAX_NETWORKS` networks are drawn.

    Args:
        change_axes: Axes for the relative change of the logits.
        accuracy_axes: Axes for the accuracy of the networks that have one. None leaves it out.
        measurements: Measurements by name of network.
        chance: Chance-level accuracy in per cent, drawn as a horizontal line.
    """
    measurements = dict(islice(measurements.items(), MAX_NETWORKS))
    styles = dict(zip(measurements, cycle(LINE_STYLES), strict=False))
    draw_mean_change(
        change_axes, [Line(name, styles[name], result.at, result.change) for name, result in measurements.items()]
    )
    if accuracy_axes is not None:
        lines = [
            Line(name, styles[name], result.at, result.accuracy)
            for name, result in measurements.items()
            if result.accuracy is not None
        ]
        draw_against_angle(accuracy_axes, lines, "accuracy (%)", chance)


def save_invariance(folder: Path, invariances: Mapping[str, Invariance], chance: float | None = None) -> list[Path]:
    """Save the figure of :func:`draw_invariance` as ``angles.png`` and ``angles.svg``.

    Args:
        folder: Output folder. It is created if it does not exist.
        invariances: Measurements by name of network.
        chance: Chance-level accuracy in per cent, drawn as a horizontal line.

    Returns:
        The paths of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = 1 + any(result.accuracy is not None for result in invariances.values())
    with matplotlib.rc_context(FIGURE_STYLE):
        names = [shorten(name, MAX_LEGEND_NAME_LENGTH) for name in islice(invariances, MAX_NETWORKS)]
        legend_rows = -(-(len(names) + 1) // legend_columns(names))
        figure = Figure(figsize=(5 * columns, 3.6 + 0.2 * max(0, legend_rows - 2)), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
        draw_invariance(axes[0], axes[1] if columns > 1 else None, invariances, chance)
        if len(invariances) > MAX_NETWORKS:
            figure.supxlabel(f"{MAX_NETWORKS} of {len(invariances)} networks drawn", fontsize=9, color="0.35")
        return save_png_and_svg(figure, folder / "angles", dpi=160)
