import pytest
from matplotlib.figure import Figure

from tigranet.evaluation.curves import Invariance
from tigranet.figures.angles import draw_invariance, save_invariance
from tigranet.figures.curves import STYLES

AT = (0.0, 45.0, 90.0, 360.0)
OURS = Invariance(5, AT, (0.0, 0.2, 1e-7, 0.0), (99.0, 95.0, 99.0, 99.0))
FRESH = Invariance(5, AT, (0.0, 0.3, 1e-7, 0.0), None)


def drawn(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_a_network_has_the_same_line_on_both_and_an_accuracy_only_where_it_has_one():
    change, accuracy = Figure(layout="constrained").subplots(1, 2)
    draw_invariance(change, accuracy, {"fresh": FRESH, "ours": OURS}, chance=33.3)
    assert set(drawn(change)) == {"fresh", "ours"}
    assert set(drawn(accuracy)) == {"ours", "guessing"}
    assert drawn(change)["ours"].get_color() == drawn(accuracy)["ours"].get_color() == STYLES[1]["color"]
    assert drawn(change)["ours"].get_ydata() == pytest.approx(OURS.change)
    assert change.get_ylim()[0] == 0


def test_more_networks_than_styles():
    axes = Figure(layout="constrained").add_subplot()
    draw_invariance(axes, None, {str(number): FRESH for number in range(len(STYLES) + 1)})
    assert len(drawn(axes)) == len(STYLES) + 1


def test_the_same_picture_is_the_same_file(tmp_path):
    for folder in ("a", "b"):
        written = save_invariance(tmp_path / folder, {"ours": OURS})
        assert [path.name for path in written] == ["angles.png", "angles.svg"]
    assert (tmp_path / "a" / "angles.svg").read_text() == (tmp_path / "b" / "angles.svg").read_text()
