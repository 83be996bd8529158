import pytest
from matplotlib.figure import Figure

from tigranet.evaluation.curves import Invariance
from tigranet.figures.angles import MAX_NETWORKS, draw_invariance, save_invariance
from tigranet.figures.curves import LINE_STYLES

ANGLES = (0.0, 45.0, 90.0, 360.0)
WITH_ACCURACY = Invariance(5, ANGLES, (0.0, 0.2, 1e-7, 0.0), (99.0, 95.0, 99.0, 99.0))
WITHOUT_ACCURACY = Invariance(5, ANGLES, (0.0, 0.3, 1e-7, 0.0), None)


def labelled_lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_a_network_has_the_same_style_on_both_axes_and_an_accuracy_line_only_if_it_was_measured():
    change, accuracy = Figure(layout="constrained").subplots(1, 2)
    draw_invariance(change, accuracy, {"untrained": WITHOUT_ACCURACY, "trained": WITH_ACCURACY}, chance=33.3)
    change_lines, accuracy_lines = labelled_lines(change), labelled_lines(accuracy)
    assert set(change_lines) == {"untrained", "trained"}
    assert set(accuracy_lines) == {"trained", "chance level"}
    assert change_lines["trained"].get_color() == accuracy_lines["trained"].get_color() == LINE_STYLES[1]["color"]
    assert change_lines["trained"].get_ydata() == pytest.approx(WITH_ACCURACY.change)
    assert accuracy_lines["trained"].get_ydata() == pytest.approx(WITH_ACCURACY.accuracy)
    assert set(accuracy_lines["chance level"].get_ydata()) == {33.3}
    assert change.get_ylim()[0] == 0
    assert change.get_xlabel() == "rotation angle (degrees)"
    assert accuracy.get_ylabel() == "accuracy (%)"


def test_styles_repeat_if_there_are_more_networks_than_styles():
    axes = Figure(layout="constrained").add_subplot()
    draw_invariance(axes, None, {str(number): WITHOUT_ACCURACY for number in range(len(LINE_STYLES) + 1)})
    lines = labelled_lines(axes)
    assert len(lines) == len(LINE_STYLES) + 1
    assert lines["0"].get_color() == lines[str(len(LINE_STYLES))].get_color()


def test_equal_measurements_give_equal_files(tmp_path):
    for folder in ("a", "b"):
        paths = save_invariance(tmp_path / folder, {"network": WITH_ACCURACY})
        assert [path.name for path in paths] == ["angles.png", "angles.svg"]
    assert (tmp_path / "a" / "angles.svg").read_text() == (tmp_path / "b" / "angles.svg").read_text()


def test_of_many_networks_the_first_are_drawn(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(
        "tigranet.figures.angles.save_png_and_svg", lambda figure, *_, **__: figures.append(figure) or []
    )
    curve = Invariance(3, (0.0, 90.0, 360.0), (0.0, 0.5, 0.0), (90.0, 80.0, 70.0))
    save_invariance(tmp_path, {f"a network with a long name {number}": curve for number in range(30)}, 10.0)
    figures[0].draw_without_rendering()
    assert len(figures[0].axes[0].get_legend().get_texts()) == MAX_NETWORKS
    assert figures[0].get_supxlabel() == f"{MAX_NETWORKS} of 30 networks drawn"
