from dataclasses import replace

import pytest

from tigranet.figures.training_size import NETWORK_STYLES, TrainingSizeCurve
from tigranet.reproduction.tables import TABLES
from tigranet.reproduction.training_size import training_size_curves

FEW = TABLES["few"]


def run(row, seed, rotated, images=None):
    return {
        "row": row.name, "data": row.data, "architecture": row.architecture, "epochs given": None, "seed": seed,
        "recipe": row.recipe, "images": images or row.images, "robustness": {"rotated": {"mean": rotated}},
    }  # fmt: skip


RUNS = [run(row, seed, 40.0 + seed + number) for number, row in enumerate(FEW.rows) for seed in (0, 2)]


def test_a_curve_is_the_mean_over_seeds_for_each_number_of_images():
    curves = training_size_curves(FEW, RUNS)
    assert [curve.name for curve in curves] == [row.kind for row in FEW.rows[:9]]
    assert curves[0].training_images == [50, 100, 500, 1000, 5000]
    assert [accuracy.mean for accuracy in curves[0].accuracies] == pytest.approx([41, 50, 59, 68, 77])
    assert [accuracy.std for accuracy in curves[0].accuracies] == pytest.approx([2**0.5] * 5)


def test_a_network_trained_on_rotated_images_has_the_same_colour_and_a_dashed_line():
    styles = {curve.name: curve.style for curve in training_size_curves(FEW, RUNS)}
    upright, (rotated, *_) = (
        styles["ConvNet"],
        [styles[row.kind] for row in FEW.rows if row.method == "ConvNet" and row.recipe.get("turned")],
    )
    assert upright["color"] == rotated["color"]
    assert "linestyle" in rotated
    assert "linestyle" not in upright


def test_methods_without_runs_have_no_curve():
    assert training_size_curves(FEW, []) == []
    (curve,) = training_size_curves(FEW, [run(FEW.rows[3], 0, 44.0, images=35)])
    assert curve == TrainingSizeCurve("ConvNet", NETWORK_STYLES[3], [35], [(44.0, 0.0, 1)])


def test_runs_with_other_epochs_are_left_out():
    assert training_size_curves(replace(FEW, rows=FEW.rows[:1]), RUNS, epochs=1) == []
