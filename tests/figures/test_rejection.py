import pytest
from matplotlib.figure import Figure

from tigranet.evaluation.rejection import RejectionLevel
from tigranet.figures.rejection import draw_rejection


def test_the_lines_are_the_shares_of_answered_images_and_of_right_answers():
    levels = [RejectionLevel(0.0, 10, 10, 7), RejectionLevel(0.5, 10, 4, 4), RejectionLevel(1.0, 10, 0, 0)]
    axes = Figure().add_subplot()
    draw_rejection(axes, levels)
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["answered"].get_xdata()) == [0, 0.5, 1]
    assert list(lines["answered"].get_ydata()) == [100, 40, 0]
    right = lines["right, of those answered"]
    assert list(right.get_xdata()) == [0, 0.5]  # without answers there is no accuracy
    assert list(right.get_ydata()) == pytest.approx([70, 100])
