"""The reliability diagram: accuracy against confidence."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from tigranet.evaluation.calibration import ConfidenceBin
from tigranet.figures.curves import BASELINE_STYLE, NETWORK_STYLE, Line, draw_legend, draw_line

STYLES = (NETWORK_STYLE, BASELINE_STYLE)
"""Line styles: without and with temperature scaling."""


def draw_reliability(axes: Axes, curves: Mapping[str, Sequence[ConfidenceBin]]) -> None:
    """Draw the accuracy of predictions against their mean confidence. Right probabilities lie on the diagonal.

    Args:
        axes: Axes to draw on.
        curves: Predictions grouped by confidence, by the name of the line; at most two.
    """
    axes.plot([0, 100], [0, 100], color="0.6", linewidth=1)
    for (name, groups), style in zip(curves.items(), STYLES, strict=False):
        confidence = [100 * group.confidence for group in groups]
        draw_line(axes, Line(name, style, confidence, [100 * group.accuracy for group in groups]))
    axes.set(xlabel="confidence (%)", ylabel="accuracy (%)", xlim=(0, 101), ylim=(0, 101))
    draw_legend(axes)
