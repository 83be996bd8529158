import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.data import Isometry
from tigranet.training import Recipe
from tigranet.workflows.measured_training import count_parameters, train_and_measure, train_module
from tigranet.workflows.train import train

LAYERS = "SC[2,2]-DP[99]-S[2]-FC[5]"


def run(data):
    torch.manual_seed(0)
    net = TIGraNet(LAYERS, 3)
    return net, train_and_measure(net, LAYERS, data, Recipe(epochs=1))


def test_it_trains_measures_and_repeats(small):
    (net, first), (_, second) = run(small), run(small)
    assert first.parameters == count_parameters(net) == sum(parameter.numel() for parameter in net.parameters())
    assert (first.train, first.moved, first.nearest) == (second.train, second.moved, second.nearest)
    assert first.train == first.validation == first.test
    assert first.drop == first.test - first.moved.mean
    written = json.loads(json.dumps(first.to_json()))
    assert written["moved"]["mean"] == first.moved.mean
    assert written["how"] == "rotated"
    assert set(written["machine"]) == {"cpu", "threads", "gpu"}
    assert written["recipe"]["epochs"] == 1


@pytest.mark.usefixtures("whole_results")
def test_the_test_is_that_of_the_data_set(small):
    none = replace(small, test_motion=Isometry(), validation=small.validation.take([]))
    result = run(none)[1]
    assert (result.moved.mean, result.nearest.mean, result.moved.draws) == (result.test, result.test, 1)
    assert result.validation is None
    shifted = run(replace(small, test_motion=Isometry(max_shift=2)))[1]
    assert shifted.moved == shifted.nearest == shifted.robustness.moved["shifted by up to 2 pixels"]
    both = run(replace(small, test_motion=Isometry(rotated=True, max_shift=2)))[1]
    assert both.how not in both.robustness.moved
    assert both.moved.draws == 10


def test_without_test_images_nothing_is_measured_on_them(small):
    result = run(replace(small, test=small.test.take([])))[1]
    assert result.train == result.validation is not None
    for name in ("test", "moved", "nearest", "robustness", "drop"):
        assert getattr(result, name) is None
        assert json.loads(json.dumps(result.to_json()))[name] is None


class Remembers(nn.Module):
    """A network that is fitted by its own method."""

    def fit(self, images, labels):
        self.labels = labels

    def forward(self, images):
        return torch.zeros(len(images), 3)


def test_a_network_with_its_own_fit_is_fitted_by_it(small):
    net = Remembers()
    assert train_module(net, small, Recipe(epochs=1)) >= 0
    assert torch.equal(net.labels, small.train.labels)


@pytest.mark.parametrize(("device", "accelerator"), [("auto", "auto"), ("cpu", "cpu")])
def test_the_device_decides_the_accelerator(small, monkeypatch, device, accelerator):
    received = []
    monkeypatch.setattr("tigranet.training.fit_network.fit", lambda *_, hardware: received.append(hardware.accelerator))
    train_module(TIGraNet(LAYERS, 3), small, Recipe(epochs=1), device=device)
    assert received == [accelerator]


@pytest.mark.usefixtures("whole_results")
def test_the_papers_small_network_reaches_the_papers_accuracy(mnist_012):
    """Trained upright, tested rotated in ten draws: the paper has 94 ± 0.42. A fraction of all epochs suffices."""
    result = train(mnist_012, architecture="paper-small", recipe={"epochs": 50}).result
    assert result.moved.draws == 10
    assert result.moved.mean >= 94
