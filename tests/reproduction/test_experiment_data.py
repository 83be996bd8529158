from dataclasses import replace

import pytest
import torch

from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.rotation_protocol import mean_colour, rotate_with_colour
from tigranet.layers.disc_window import fade_to_colour
from tigranet.reproduction import experiment_data as module
from tigranet.reproduction.experiment import Experiment
from tigranet.reproduction.experiment_data import draw_any, experiment_data

EXPERIMENT = Experiment("ResNet", "cifar10", "resnet18")


def part(count, size=8):
    return LabelledImages(torch.rand(count, 3, size, size), torch.arange(count) % 3)


def data_set(train=60, validation=12, test=9):
    return DataSet("photographs", ("a", "b", "c"), part(train), part(validation), part(test))


def test_by_default_all_images_are_used():
    data = data_set()
    assert experiment_data(EXPERIMENT, data, seed=0) is data


def test_validation_images_take_the_place_of_test_images():
    data = data_set()
    result = experiment_data(replace(EXPERIMENT, on_validation=True), data, seed=0)
    assert result.test is result.validation is data.validation
    assert result.train is data.train


def test_a_data_set_without_validation_images_lends_a_third_of_its_training_images():
    data = data_set(validation=0)
    result = experiment_data(replace(EXPERIMENT, on_validation=True), data, seed=0)
    assert (len(result.train.labels), len(result.test.labels)) == (40, 20)
    pixels = torch.cat([result.train.images, result.test.images]).flatten(1)
    assert torch.equal(
        pixels[pixels[:, 0].argsort()], data.train.images.flatten(1)[data.train.images[:, 0, 0, 0].argsort()]
    )
    assert set(result.test.labels.tolist()) == {0, 1, 2}


def test_few_images_are_drawn_after_the_validation_images_are_set_aside(monkeypatch):
    monkeypatch.setattr(module, "MAX_VALIDATION_IMAGES", 5)
    experiment = replace(EXPERIMENT, on_validation=True, images=7)
    result = experiment_data(experiment, data_set(), seed=0)
    assert [len(each.labels) for each in (result.train, result.validation, result.test)] == [7, 5, 12]


def test_a_draw_is_balanced_or_in_the_proportions_of_the_data():
    rare = LabelledImages(torch.rand(1000, 1, 2, 2), (torch.arange(1000) >= 900).long())
    data = DataSet("rare", ("many", "few"), rare, rare, rare)
    balanced, proportional = (
        torch.bincount(experiment_data(replace(EXPERIMENT, images=100, balanced_draw=draw), data, 0).train.labels)
        for draw in (True, False)
    )
    assert balanced.tolist() == [50, 50]
    assert proportional[1] < 25


def test_larger_draws_contain_smaller_ones_and_depend_on_the_seed():
    labels = torch.zeros(50, dtype=torch.int64)
    small, large = (draw_any(labels, seed=3, count=count).tolist() for count in (10, 30))
    assert set(small) < set(large)
    assert small == sorted(small) == draw_any(labels, seed=3, count=10).tolist()
    assert small != draw_any(labels, seed=4, count=10).tolist()
    assert draw_any(labels, seed=3, count=99).tolist() == list(range(50))


def test_all_images_are_seen_through_the_same_disc():
    data = data_set()
    result = experiment_data(replace(EXPERIMENT, windowed=True), data, seed=0)
    colour = mean_colour(data.train.images)
    for before, after in ((data.train, result.train), (data.validation, result.validation), (data.test, result.test)):
        torch.testing.assert_close(after.images[:, :, 0, 0], colour.expand(len(before.labels), 3))
        torch.testing.assert_close(after.images[:, :, 4, 4], before.images[:, :, 4, 4])
        assert torch.equal(after.labels, before.labels)


@pytest.mark.parametrize("size", [(16, 16), (15, 15)])
def test_the_disc_commutes_with_quarter_turns(size):
    images, colour = torch.rand(2, 3, *size), torch.tensor([0.1, 0.5, 0.9])
    rotated = torch.rot90(images, 1, (2, 3))
    torch.testing.assert_close(
        fade_to_colour(rotated, colour[:, None, None]),
        torch.rot90(fade_to_colour(images, colour[:, None, None]), 1, (2, 3)),
    )


def test_nothing_inside_the_disc_leaves_the_canvas_at_any_angle():
    """The sum of the differences from the background is that of the upright image, unless something was cut off."""
    colour = torch.tensor([0.5])
    images = fade_to_colour(torch.ones(1, 1, 32, 32), colour[:, None, None])
    for degrees in (10.0, 45.0, 200.0):
        rotated = rotate_with_colour(images, degrees, colour)
        assert float((rotated - 0.5).sum()) == pytest.approx(float((images - 0.5).sum()), rel=2e-3)


def test_a_final_training_includes_the_validation_images():
    data = data_set()
    result = experiment_data(replace(EXPERIMENT, includes_validation=True), data, seed=0)
    assert torch.equal(result.train.images, torch.cat([data.train.images, data.validation.images]))
    assert torch.equal(result.train.labels, torch.cat([data.train.labels, data.validation.labels]))
    assert len(result.validation.labels) == 0
    assert result.test is data.test
    few = experiment_data(replace(EXPERIMENT, includes_validation=True, images=65), data, seed=0)
    assert [len(part.labels) for part in (few.train, few.validation)] == [65, 0]
