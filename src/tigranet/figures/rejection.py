"""Coverage and accuracy against the probability below which answers are rejected."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from tigranet.evaluation.rejection import RejectionLevel
from tigranet.figures.curves import BASELINE_STYLE, NETWORK_STYLE, Line, draw_legend, draw_line


def draw_rejection(axes: Axes, levels: Sequence[RejectionLevel]) -> None:
    """Draw the share of images that are answered, and the share of these answers that are right.

    Args:
        axes: Axes to draw on.
        levels: The answers at each probability, in ascending order. Where nothing is answered, no accuracy is drawn.
    """
    answered = [(level.probability, 100 * level.accuracy) for level in levels if level.accuracy is not None]
    right = Line("right, of those answered", NETWORK_STYLE, *zip(*answered, strict=True)) if answered else None
    probabilities = [level.probability for level in levels]
    for line in (right, Line("answered", BASELINE_STYLE, probabilities, [100 * level.coverage for level in levels])):
        if line is not None:
            draw_line(axes, line._replace(style=line.style | {"marker": ""}))
    axes.set(xlabel="answer only above this probability", ylabel="images (%)", xlim=(0, 1), ylim=(0, 103))
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    draw_legend(axes)
