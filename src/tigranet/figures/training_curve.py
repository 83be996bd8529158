"""The curve of a training: losses, and the accuracy on validation images, by epoch."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tigranet.evaluation.training_history import TrainingHistory
from tigranet.figures.curves import BASELINE_STYLE, NETWORK_STYLE, Line, draw_legend, draw_line


def draw_losses(axes: Axes, history: TrainingHistory) -> None:
    """Draw the losses on training and on validation images.

    Args:
        axes: Axes to draw on.
        history: The values by epoch.
    """
    draw_line(axes, Line("training", NETWORK_STYLE | {"marker": ""}, history.epochs, history.losses))
    if history.validation_epochs:
        draw_line(axes, Line("validation", BASELINE_STYLE, history.validation_epochs, history.validation_losses))
    top = max((*history.losses, *history.validation_losses))
    axes.set(ylabel="loss", ylim=(0, 1.05 * top if top > 0 else 1))
    _finish(axes, history)


def draw_validation_accuracy(axes: Axes, history: TrainingHistory) -> None:
    """Draw the accuracy on validation images.

    Args:
        axes: Axes to draw on.
        history: The values by epoch, at least one of them validated.
    """
    draw_line(axes, Line("validation", BASELINE_STYLE, history.validation_epochs, history.validation_accuracies))
    axes.set(ylabel="accuracy (%)", ylim=(0, 103))
    _finish(axes, history)


def _finish(axes: Axes, history: TrainingHistory) -> None:
    axes.set(xlabel="epoch", xlim=(0, max(history.epochs)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    draw_legend(axes)
