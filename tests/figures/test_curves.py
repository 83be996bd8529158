import pytest
from matplotlib.figure import Figure

from tigranet.figures.curves import (
    BASELINE_STYLE,
    LINE_STYLES,
    MIN_CHANGE,
    NETWORK_STYLE,
    SECOND_NETWORK_STYLE,
    Line,
    draw_against_angle,
    draw_against_shift,
    draw_max_change,
    draw_mean_change,
    legend_columns,
)


@pytest.fixture
def axes():
    return Figure(layout="constrained").add_subplot()


def labelled_lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_each_network_has_a_line_from_0_to_360_degrees(axes):
    lines = [
        Line("network", NETWORK_STYLE, (0, 90, 360), (98, 97, 98)),
        Line("baseline", BASELINE_STYLE, (0, 90, 360), (99, 20, 99)),
    ]
    draw_against_angle(axes, lines, "accuracy (%)", chance=33.3)
    assert set(labelled_lines(axes)) == {"network", "baseline", "chance level"}
    assert labelled_lines(axes)["network"].get_ydata() == pytest.approx((98, 97, 98))
    assert labelled_lines(axes)["baseline"].get_ydata() == pytest.approx((99, 20, 99))
    assert axes.get_xlim() == (0, 360)
    assert axes.get_ylim()[0] == 0
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rotation angle (degrees)", "accuracy (%)")
    assert {90, 180, 270} <= {line.get_xdata()[0] for line in axes.get_lines() if line.get_label().startswith("_")}


def test_lines_differ_in_more_than_colour():
    for property_name in ("color", "linestyle", "marker"):
        styles = (NETWORK_STYLE, BASELINE_STYLE, SECOND_NETWORK_STYLE)
        assert len({style[property_name] for style in styles}) == 3
    for property_name in ("color", "marker"):
        assert len({style[property_name] for style in LINE_STYLES}) == len(LINE_STYLES)


def test_ticks_of_shifts_are_whole_pixels(axes):
    draw_against_shift(axes, [Line("A", NETWORK_STYLE, (0, 1, 2), (98, 97, 96))], "accuracy (%)")
    assert axes.get_xlim() == (0, 2)
    assert axes.get_xlabel() == "shift (pixels)"
    assert all(tick == int(tick) for tick in axes.get_xticks())


def test_a_single_point_is_drawn_for_images_that_are_too_small_to_shift(axes):
    draw_against_shift(axes, [Line("A", NETWORK_STYLE, (0,), (98,))], "accuracy (%)")
    assert axes.get_xlim() == (0, 1)


def test_rounding_errors_are_drawn_at_the_minimum_and_full_turns_are_left_out(axes):
    draw_max_change(axes, [Line("features", NETWORK_STYLE, (0, 45, 90, 360), (0, 0.1, 0, 0))])
    (line,) = labelled_lines(axes).values()
    assert line.get_xdata() == pytest.approx((45, 90))
    assert line.get_ydata() == pytest.approx((0.1, MIN_CHANGE))
    assert axes.get_yscale() == "log"


HOSTILE_NAMES = ("$x^{$", "_hidden", "two\nlines", "caf\udce9", "x" * 1000, "")


def test_any_name_of_a_network_is_in_the_legend(tmp_path):
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot()
    draw_mean_change(axes, [Line(name, LINE_STYLES[0], [0, 90, 360], [0, 0.5, 0]) for name in HOSTILE_NAMES])
    figure.savefig(tmp_path / "figure.svg")
    texts = [text.get_text().strip() for text in axes.get_legend().get_texts()]
    assert texts[:4] == ["$x^{$", "_hidden", r"two\nlines", r"caf\xe9"]
    assert max(map(len, texts)) <= 40
    assert axes.get_window_extent().width > 0.7 * figure.bbox.width


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["TIGraNet", "plain CNN", "chance level"], 3),
        (["features", "logits", "logits of the CNN"], 3),
        (["a name of 20 letters"] * 4, 2),
        (["x" * 32, "y"] * 2, 1),
        ([], 3),
    ],
)
def test_a_legend_has_as_many_columns_as_fit(names, columns):
    assert legend_columns(names) == columns
