from matplotlib.figure import Figure

from tigranet.evaluation.training_history import TrainingHistory
from tigranet.figures.training_curve import draw_losses, draw_validation_accuracy

HISTORY = TrainingHistory((1, 2, 3), (0.9, 0.5, 0.4), (2,), (0.6,), (75.0,), 3.0)


def drawn(draw, history):
    axes = Figure().add_subplot()
    draw(axes, history)
    return {line.get_label(): list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in axes.lines}


def test_the_lines_are_those_of_the_table():
    losses = drawn(draw_losses, HISTORY)
    assert losses == {"training": [(1, 0.9), (2, 0.5), (3, 0.4)], "validation": [(2, 0.6)]}
    assert drawn(draw_validation_accuracy, HISTORY) == {"validation": [(2, 75.0)]}


def test_a_training_of_one_epoch_without_validation_is_drawn():
    lines = drawn(draw_losses, TrainingHistory((1,), (0.0,), (), (), (), 0.0))
    assert lines == {"training": [(1, 0.0)]}
