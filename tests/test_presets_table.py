"""The table of all presets marks the best network of each data set, and shows how far the defaults are below it."""

import pytest
from benchmarks import presets

from tigranet.architecture import PRESETS
from tigranet.workflows.larger_network import EXTRA_MINUTES, GOOD_ACCURACY


def row(network, seed, upright, rotated, data="plankton", images=300):
    accuracies = {"as they are": str(upright), "rotated": str(rotated)}
    recipe = {"training images": str(min(images, 24_000)), "epochs": "60"}
    return {"data": data, "images": str(images), "network": network, "seed": str(seed)} | accuracies | recipe


def lines(rows):
    return presets.render(rows, dict.fromkeys(PRESETS, 4.0)).splitlines()


def test_the_best_network_is_that_with_the_highest_mean_over_seeds_and_both_accuracies():
    large, small = (presets.default_network("plankton", 300, gpu) for gpu in (True, False))
    rows = [row(large, 0, 50, 40), row(large, 1, 60, 50), row(small, 0, 49, 39), row("pyramid-small", 0, 30, 30)]
    (line,) = (line for line in lines(rows) if line.startswith("| plankton"))
    assert "**55.0 / 45.0**" in line
    assert "| 49.0 / 39.0" in line
    assert f"`{large}` +0.0" in line
    assert f"`{small}` -1.0" in line  # on seed 0, which both have
    assert "| plankton | 300 | 2 |" in line


def test_a_cpu_goes_on_with_the_accurate_network_where_it_is_worth_the_time():
    fast, accurate = presets.default_network("plankton", 300, gpu=False), presets.accurate_on_cpu("plankton", 300)
    assert accurate == f"{presets.default_network('plankton', 300, gpu=True)} effort=0.5"

    def default(accuracy, cost):
        rows = [row(fast, 0, accuracy, accuracy), row(accurate, 0, 99, 99)]
        table = presets.render(rows, dict.fromkeys(PRESETS, cost)).splitlines()
        return next(line for line in table if line.startswith("| plankton")).split("`")[-2]

    assert default(GOOD_ACCURACY - 1, cost=4.0) == accurate
    assert default(GOOD_ACCURACY, cost=4.0) == fast
    minutes = 300 * 60 * 4.0 / 2 / 60_000
    assert default(GOOD_ACCURACY - 1, cost=4.0 * 1.1 * EXTRA_MINUTES / minutes) == fast


@pytest.mark.parametrize(("images", "is_shortened"), [(1_000, False), (5_000, True)])
def test_a_training_from_random_weights_is_shortened_for_many_images(images, is_shortened):
    assert ("effort=0.5" in presets.accurate_on_cpu("photographs", images)) == is_shortened


def test_the_time_on_two_cores_is_that_of_all_epochs_and_grows_with_the_pixels():
    (line,) = (line for line in lines([row("pyramid", 0, 50, 50)]) if line.startswith("| plankton"))
    assert "0.6 min" in line  # 300 images, 60 epochs, 4 ms, two cores
    (line,) = (line for line in lines([row("pyramid", 0, 50, 50, "photographs")]) if line.startswith("| photographs"))
    assert "0.1 min" in line  # a quarter of the pixels


def test_all_images_have_a_row_of_their_own_and_networks_without_rows_are_empty():
    rows = [row("pyramid", 0, 50, 50), row("pyramid", 0, 70, 70, images=presets.ALL_IMAGES)]
    few, many = (line.split(" | ") for line in lines(rows) if line.startswith("| plankton"))
    assert (few[1], many[1]) == ("300", "24,000")
    assert (
        sum(cell.strip(" |") == "-" for cell in few) == len(presets.NETWORKS) - 1 + 2
    )  # nor are the defaults measured


def test_a_table_with_other_networks_has_only_the_measured_ones_and_no_time_where_it_is_not_known():
    rows = [row("pyramid", 0, 50, 50), row("LC[4,5]-S[2]", 0, 40, 40)]
    (line,) = (line for line in lines(rows) if line.startswith("| plankton"))
    assert line == "| plankton | 300 | 1 | 40.0 / 40.0 | **50.0 / 50.0**, 0.6 min | - | - |"


def test_the_default_starts_from_a_trained_network_except_on_the_images_of_that_network():
    assert presets.default_network("steel", 300, gpu=False) == "pyramid-small init=pyramid-small-cifar10"
    assert presets.default_network("photographs", 300, gpu=True) == "pyramid-large"
