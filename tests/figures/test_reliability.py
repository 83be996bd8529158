from matplotlib.figure import Figure

from tigranet.evaluation.calibration import ConfidenceBin
from tigranet.figures.reliability import draw_reliability


def test_accuracy_is_drawn_against_confidence_beside_the_diagonal():
    axes = Figure().add_subplot()
    bins = (ConfidenceBin(3, 0.6, 0.5), ConfidenceBin(4, 0.9, 0.75))
    draw_reliability(axes, {"as predicted": bins, "with temperature": bins[:1]})
    diagonal, first, second = axes.get_lines()
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 100]
    assert (list(first.get_xdata()), list(first.get_ydata())) == ([60, 90], [50, 75])
    assert list(second.get_xdata()) == [60]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["as predicted", "with temperature"]
