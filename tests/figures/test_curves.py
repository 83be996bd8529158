import pytest
from matplotlib.figure import Figure

from tigranet.figures.curves import (
    OURS,
    OURS_TOO,
    RIVAL,
    ROUNDING,
    STYLES,
    Line,
    draw_against_angle,
    draw_against_shift,
    draw_change,
)


@pytest.fixture
def axes():
    return Figure(layout="constrained").add_subplot()


def drawn(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_each_network_has_its_line_from_0_to_360(axes):
    ours, rival = (Line(name, style, (0, 90, 360), (98, 97, 98)) for name, style in (("A", OURS), ("B", RIVAL)))
    draw_against_angle(axes, [ours, rival._replace(values=(99, 20, 99))], "accuracy, %", chance=33.3)
    assert set(drawn(axes)) == {"A", "B", "guessing"}
    assert drawn(axes)["B"].get_ydata() == pytest.approx((99, 20, 99))
    assert axes.get_xlim() == (0, 360)
    assert axes.get_ylim()[0] == 0
    assert {90, 180, 270} <= {line.get_xdata()[0] for line in axes.get_lines() if line.get_label().startswith("_")}


def test_lines_differ_by_more_than_colour():
    for what in ("color", "linestyle", "marker"):
        assert len({style[what] for style in (OURS, RIVAL, OURS_TOO)}) == 3
    for what in ("color", "marker"):
        assert len({style[what] for style in STYLES}) == len(STYLES)


def test_shifts_are_whole_pixels(axes):
    draw_against_shift(axes, [Line("A", OURS, (0, 1, 2), (98, 97, 96))], "accuracy, %")
    assert axes.get_xlim() == (0, 2)
    assert all(tick == int(tick) for tick in axes.get_xticks())


def test_images_of_one_pixel_cannot_be_shifted_and_are_drawn_all_the_same(axes):
    draw_against_shift(axes, [Line("A", OURS, (0,), (98,))], "accuracy, %")
    assert axes.get_xlim() == (0, 1)


def test_what_is_below_rounding_is_drawn_at_it_and_no_turn_is_not_drawn(axes):
    draw_change(axes, [Line("features", OURS, (0, 45, 90, 360), (0, 0.1, 0, 0))])
    (line,) = drawn(axes).values()
    assert line.get_xdata() == pytest.approx((45, 90))
    assert line.get_ydata() == pytest.approx((0.1, ROUNDING))
    assert axes.get_yscale() == "log"
