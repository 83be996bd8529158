from dataclasses import replace

import matplotlib.image
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tigranet.evaluation.accuracy import Accuracy
from tigranet.figures.training_size import (
    NETWORK_STYLES,
    TrainingSizeCurve,
    draw_training_size,
    save_by_images,
    training_size_curves,
)
from tigranet.reproduction.tables import TABLES

FEW = TABLES["few"]


def run(row, seed, rotated, images=None):
    return {
        "row": row.name, "data": row.data, "architecture": row.architecture, "epochs given": None, "seed": seed,
        "recipe": row.recipe, "images": images or row.images, "robustness": {"rotated": {"mean": rotated}},
    }  # fmt: skip


RUNS = [run(row, seed, 40.0 + seed + number) for number, row in enumerate(FEW.rows) for seed in (0, 2)]


@pytest.fixture
def axes():
    return Figure(layout="constrained").add_subplot()


def test_a_line_is_the_mean_over_seeds_for_each_number_of_images(axes):
    curves = training_size_curves(FEW, RUNS)
    assert [curve.name for curve in curves] == [row.kind for row in FEW.rows[:9]]
    draw_training_size(axes, curves)
    first = axes.get_lines()[0]
    assert list(first.get_xdata()) == [50, 100, 500, 1000, 5000]
    assert first.get_ydata() == pytest.approx([41, 50, 59, 68, 77])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(77 + 2**0.5)
    assert axes.get_xscale() == "log"


def test_the_legend_is_in_the_order_in_which_lines_end(axes):
    draw_training_size(axes, training_size_curves(FEW, RUNS))
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [row.kind for row in FEW.rows[:-10:-1]]


def test_numbers_of_images_are_tick_labels(axes):
    draw_training_size(axes, training_size_curves(FEW, RUNS))
    axes.figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "100", "500", "1,000", "5,000"]


def test_halving_the_error_rate_is_the_same_distance_everywhere(axes):
    draw_training_size(axes, training_size_curves(FEW, RUNS))
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
    styles = {curve.name: curve.style for curve in training_size_curves(FEW, RUNS)}
    upright, (rotated, *_) = (
        styles["ConvNet"],
        [styles[row.kind] for row in FEW.rows if row.method == "ConvNet" and row.recipe.get("turned")],
    )
    assert upright["color"] == rotated["color"]
    assert "linestyle" in rotated
    assert "linestyle" not in upright


def luminance(colour):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_methods_without_runs_are_not_drawn(tmp_path):
    assert save_by_images(tmp_path / "few", FEW, []) == []
    assert list(tmp_path.iterdir()) == []
    (curve,) = training_size_curves(FEW, [run(FEW.rows[3], 0, 44.0, images=35)])
    assert curve == TrainingSizeCurve("ConvNet", NETWORK_STYLES[3], [35], [(44.0, 0.0, 1)])


def test_equal_runs_give_equal_files(tmp_path):
    paths = save_by_images(tmp_path / "few-quick", FEW, RUNS)
    assert [path.name for path in paths] == ["few-quick.png", "few-quick.svg"]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in save_by_images(tmp_path / "few-quick", FEW, RUNS)] == first
    assert b"GroupCNN (C8)" in first[1]
    assert matplotlib.image.imread(paths[0]).std() > 0.05


def test_runs_with_other_epochs_are_left_out():
    assert training_size_curves(replace(FEW, rows=FEW.rows[:1]), RUNS, epochs=1) == []
