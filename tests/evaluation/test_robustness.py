import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.data import ROTATED, DataSet, Isometry, LabelledImages
from tigranet.evaluation import accuracy, measure_robustness, moved_accuracy
from tigranet.evaluation.robustness import QUARTER, robustness


def test_it_holds_the_accuracies_and_the_drops(trained, mnist_012):
    result = measure_robustness(trained, mnist_012, seed=3)
    assert result.images == 100
    assert result.upright == accuracy(trained, mnist_012.test)
    assert result.drop("turned by 90 degrees") == 0
    assert result.moved["rotated"] == moved_accuracy(trained, mnist_012.test, ROTATED, seed=3)
    assert result.moved["shifted by up to 3 pixels"] == moved_accuracy(
        trained, mnist_012.test, Isometry(max_shift=3), seed=3
    )
    assert result.drop("rotated") == result.upright - result.moved["rotated"].mean
    written = json.loads(json.dumps(result.to_json()))
    assert written["moved"]["rotated"]["drop"] == pytest.approx(result.drop("rotated"))


class NanForBright(nn.Module):
    """NaN for images with a mean above one half, otherwise class 0."""

    def forward(self, images):
        means = images.mean((1, 2, 3))
        logits = torch.stack([torch.ones_like(means), torch.zeros_like(means)], 1)
        return logits.masked_fill(means[:, None] > 0.5, float("nan"))


def test_images_without_a_finite_answer_are_counted_and_wrong():
    images = torch.cat([torch.zeros(15, 1, 8, 8), torch.ones(5, 1, 8, 8)])
    part = LabelledImages(images, torch.zeros(20, dtype=torch.int64))
    result = robustness(NanForBright(), DataSet("noise", ("a", "b"), part, part, part))
    assert (result.upright, result.unanswered) == (75, 5)
    assert result.moved[QUARTER].mean == 75
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["unanswered"] == 5
    assert robustness(TopHalf(), DataSet("noise", ("a", "b"), part, part, part)).unanswered == 0


class TopHalf(nn.Module):
    """Class 0 if the top half is brighter. Keeps the sizes of its batches."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, images):
        self.sizes.append(len(images))
        top, bottom = images.sum((1, 3)).chunk(2, dim=1)
        return torch.stack([top.sum(1), bottom.sum(1)], 1)


def test_images_are_rotated_by_90_degrees_batch_by_batch():
    images = torch.rand(600, 1, 8, 8)
    part = LabelledImages(images, torch.arange(600) % 2)
    data, module = DataSet("noise", ("a", "b"), part, part, part), TopHalf()
    result = robustness(module, data)
    expected = accuracy(TopHalf(), part._replace(images=torch.rot90(images, 1, (2, 3))))
    assert result.moved[QUARTER].mean == expected != result.upright
    assert max(module.sizes) == 256


def test_a_model_of_other_data_is_an_error(mnist_012):
    with pytest.raises(ValueError, match=r"9 classes .*1 channels, mnist-012 has 3 and 1"):
        measure_robustness(TIGraNet("SC[1,1]-S[1]", num_classes=9), mnist_012)


def test_a_model_with_other_class_names_is_an_error(mnist_012):
    net = TIGraNet("SC[1,1]-S[1]", num_classes=3, class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="a, b, c, mnist-012 has"):
        measure_robustness(net, mnist_012)


def test_data_without_test_images_are_an_error(mnist_012):
    net, data = TIGraNet("SC[1,1]-S[1]", num_classes=3), replace(mnist_012, test=mnist_012.test.take([]))
    for measure in (measure_robustness, robustness):
        with pytest.raises(ValueError, match="mnist-012 has no test images"):
            measure(net, data)
