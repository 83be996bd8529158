import matplotlib.image
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tigranet.evaluation.accuracy import Accuracy
from tigranet.figures.training_size import (
    NETWORK_STYLES,
    ROTATED_TRAINING_STYLE,
    TrainingSizeCurve,
    draw_training_size,
    save_training_size,
)

TRAINING_IMAGES = [50, 100, 500, 1000, 5000]
CURVES = [
    TrainingSizeCurve(
        f"method {number}",
        NETWORK_STYLES[number],
        TRAINING_IMAGES,
        [Accuracy(40.0 + number + 9 * place, 2**0.5, 2) for place in range(5)],
    )
    for number in range(7)
]


@pytest.fixture
def axes():
    return Figure(layout="constrained").add_subplot()


def test_a_line_is_the_mean_for_each_number_of_images_with_a_band_of_one_deviation(axes):
    draw_training_size(axes, CURVES)
    first = axes.get_lines()[0]
    assert list(first.get_xdata()) == TRAINING_IMAGES
    assert first.get_ydata() == pytest.approx([40, 49, 58, 67, 76])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(76 + 2**0.5)
    assert axes.get_xscale() == "log"


def test_the_legend_is_in_the_order_in_which_lines_end(axes):
    draw_training_size(axes, CURVES)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [curve.name for curve in CURVES[::-1]]


def test_numbers_of_images_are_tick_labels(axes):
    draw_training_size(axes, CURVES)
    axes.figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "100", "500", "1,000", "5,000"]


@pytest.mark.parametrize(("counts", "angle"), [([50, 100], 0), ([1_000, 3_000], 0), ([10_000, 24_336], 30)])
def test_labels_of_large_numbers_that_are_close_together_are_tilted(axes, counts, angle):
    draw_training_size(axes, [CURVES[0]._replace(training_images=counts, accuracies=CURVES[0].accuracies[:2])])
    axes.figure.draw_without_rendering()
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {angle}


def test_halving_the_error_rate_is_the_same_distance_everywhere(axes):
    draw_training_size(axes, CURVES)
    heights = axes.transData.transform([(50, accuracy) for accuracy in (60.0, 80.0, 90.0, 95.0)])[:, 1]
    assert heights[1:] - heights[:-1] == pytest.approx(3 * [heights[1] - heights[0]])


@pytest.mark.parametrize("mean", [0.0, 50.0, 99.7, 100.0])
def test_accuracies_of_0_and_100_per_cent_are_drawn(axes, mean):
    draw_training_size(axes, [TrainingSizeCurve("a", NETWORK_STYLES[0], [50, 100], [Accuracy(mean, 0.0, 2)] * 2)])
    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    assert low < min(mean, 99.95) < high
    assert any(low <= tick <= high for tick in axes.get_yticks())


def test_networks_differ_in_more_than_colour_and_training_in_dashes():
    for property_name in ("marker", "color"):
        assert len({style[property_name] for style in NETWORK_STYLES}) == len(NETWORK_STYLES)
    assert all(1.05 / (0.05 + luminance(style["color"])) > 2 for style in NETWORK_STYLES)  # contrast with white
    assert "linestyle" in ROTATED_TRAINING_STYLE
    assert not any("linestyle" in style for style in NETWORK_STYLES)
    assert "color" not in ROTATED_TRAINING_STYLE


def luminance(colour):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_without_curves_no_file_is_written(tmp_path):
    assert save_training_size(tmp_path / "few", []) == []
    assert list(tmp_path.iterdir()) == []


def test_equal_curves_give_equal_files(tmp_path):
    paths = save_training_size(tmp_path / "few-quick", CURVES)
    assert [path.name for path in paths] == ["few-quick.png", "few-quick.svg"]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in save_training_size(tmp_path / "few-quick", CURVES)] == first
    assert b"method 6" in first[1]
    assert matplotlib.image.imread(paths[0]).std() > 0.05
