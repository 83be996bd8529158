import pytest
import torch
from torch import nn

from tigranet.data import ROTATED, Isometry, LabelledImages
from tigranet.evaluation import Accuracy, accuracy, moved_accuracy, predict


class Brightest(nn.Module):
    """Class 0 if the left half is brighter, else class 1."""

    def forward(self, images):
        return torch.stack([images[..., : images.shape[-1] // 2].sum((1, 2, 3)), images.sum((1, 2, 3)) / 2], 1)


def left_bright(count=40, size=8):
    images = torch.zeros(count, 1, size, size)
    images[:, :, 2:6, 1:3] = 1
    return LabelledImages(images, torch.zeros(count, dtype=torch.int64))


def test_accuracy_is_in_per_cent():
    data = left_bright()
    assert accuracy(Brightest(), data) == 100
    assert accuracy(Brightest(), data._replace(labels=torch.arange(40) % 2)) == 50


def test_prediction_does_not_depend_on_the_batches():
    images = torch.rand(23, 1, 8, 8)
    assert torch.equal(predict(Brightest(), images, batch_size=5), predict(Brightest(), images, batch_size=23))


def test_prediction_is_in_evaluation_mode_and_leaves_the_mode_as_it_was():
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64)).train()
    before = module[1].running_mean.clone()
    predict(module, torch.rand(5, 1, 8, 8))
    assert torch.equal(module[1].running_mean, before)
    assert module.training


def test_a_module_that_sees_orientation_is_right_half_of_the_time_when_turned():
    seen = moved_accuracy(Brightest(), left_bright(400), ROTATED)
    assert seen.mean == pytest.approx(50, abs=5)
    assert seen.std > 0


def test_a_small_set_is_drawn_ten_times_and_a_large_one_once():
    assert moved_accuracy(Brightest(), left_bright(40), ROTATED).draws == 10
    assert moved_accuracy(Brightest(), left_bright(400), ROTATED).draws == 3
    assert moved_accuracy(Brightest(), left_bright(1000), ROTATED).draws == 1
    assert moved_accuracy(Brightest(), left_bright(40), Isometry()).draws == 1


def test_the_draws_are_those_of_the_seed():
    data = left_bright(500)
    generator = torch.Generator().manual_seed(7)
    wanted = [accuracy(Brightest(), data._replace(images=ROTATED(data.images, generator))) for _ in range(2)]
    seen = moved_accuracy(Brightest(), data, ROTATED, seed=7)
    assert seen.mean == pytest.approx(sum(wanted) / 2)
    assert seen == moved_accuracy(Brightest(), data, ROTATED, seed=7)
    assert seen != moved_accuracy(Brightest(), data, ROTATED, seed=8)


def test_shifts_are_measured_too():
    assert moved_accuracy(Brightest(), left_bright(), Isometry(max_shift=1)).mean == 100
    assert moved_accuracy(Brightest(), left_bright(), Isometry(max_shift=5)).mean < 100


def test_a_trained_network_is_far_above_chance_at_every_angle(trained, mnist_012):
    assert accuracy(trained, mnist_012.test) > 60
    assert moved_accuracy(trained, mnist_012.test, ROTATED).mean > 60


def test_it_prints_as_in_the_paper():
    assert str(Accuracy(94, 0.42, 10)) == "94.0 ± 0.4"
    assert str(Accuracy(83.8, 0, 1)) == "83.8"
