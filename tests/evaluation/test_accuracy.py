import pytest
import torch
from torch import nn

from tigranet.data import Labelled, random_angles, rotate
from tigranet.evaluation import Accuracy, accuracy, predict, rotated_accuracy


class Brightest(nn.Module):
    """Class 0 if the left half is brighter, else class 1."""

    def forward(self, images):
        return torch.stack([images[..., : images.shape[-1] // 2].sum((1, 2, 3)), images.sum((1, 2, 3)) / 2], 1)


def left_bright(count=40, size=8):
    images = torch.zeros(count, 1, size, size)
    images[:, :, 2:6, 1:3] = 1
    return Labelled(images, torch.zeros(count, dtype=torch.int64))


def test_accuracy_is_in_per_cent():
    data = left_bright()
    assert accuracy(Brightest(), data) == 100
    assert accuracy(Brightest(), data._replace(labels=torch.arange(40) % 2)) == 50


def test_prediction_does_not_depend_on_the_batches():
    images = torch.rand(23, 1, 8, 8)
    assert torch.equal(predict(Brightest(), images, batch_size=5), predict(Brightest(), images, batch_size=23))


def test_a_module_that_sees_orientation_is_right_half_of_the_time_when_turned():
    seen = rotated_accuracy(Brightest(), left_bright(400), draws=4)
    assert seen.mean == pytest.approx(50, abs=5)
    assert seen.std > 0


def test_the_draws_are_those_of_the_seed():
    data = left_bright()
    generator = torch.Generator().manual_seed(7)
    wanted = [
        accuracy(Brightest(), Labelled(rotate(data.images, random_angles(40, generator)), data.labels))
        for _ in range(3)
    ]
    seen = rotated_accuracy(Brightest(), data, draws=3, seed=7)
    assert seen.mean == pytest.approx(sum(wanted) / 3)
    assert seen == rotated_accuracy(Brightest(), data, draws=3, seed=7)
    assert seen != rotated_accuracy(Brightest(), data, draws=3, seed=8)


def test_a_trained_network_is_far_above_chance_at_every_angle(trained, mnist_012):
    assert accuracy(trained, mnist_012.test) > 60
    assert rotated_accuracy(trained, mnist_012.test, draws=2).mean > 60


def test_it_prints_as_in_the_paper():
    assert str(Accuracy(94, 0.42)) == "94.0 ± 0.4"
