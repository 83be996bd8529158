"""Training with CUDA graphs gives the weights of the same training without them."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.data.dataset import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.cuda_graph import CudaGraphClassifierModule
from tigranet.training.lightning_module import ClassifierModule

ARCHITECTURE = "SC[3,2]-DP[30]-SC[4,2]-S[3]-FC[8]"
PYRAMID = "LC[2,3]-GB[3]-D-GC[3,3]-MO[4]-S[0]"
RECIPE = Recipe(epochs=6, batch_size=8, learning_rate=3e-3)


def data(count, seed=0):
    torch.manual_seed(seed)
    return LabelledImages(torch.rand(count, 1, 9, 9), torch.arange(count) % 3)


def trained_weights(monkeypatch, module_class, count, make=lambda: TIGraNet(ARCHITECTURE, 3), **hardware):
    """Train with the given class in the place of the one that uses CUDA graphs."""
    monkeypatch.setattr(sys.modules[fit.__module__], "CudaGraphClassifierModule", module_class)
    torch.manual_seed(0)
    return fit(make(), data(count), data(9, 1), RECIPE, hardware=Hardware(**hardware)).state_dict()


@pytest.fixture
def graph_recorded(monkeypatch):
    """A list that tells, for each training of the test, whether it recorded a graph."""
    flags = []
    on_fit_end = CudaGraphClassifierModule.on_fit_end
    monkeypatch.setattr(
        CudaGraphClassifierModule, "on_fit_end", lambda self: (flags.append(self.graph is not None), on_fit_end(self))
    )
    return flags


@pytest.mark.gpu
@pytest.mark.parametrize("count", [64, 61])
def test_the_weights_are_those_of_a_training_without_graphs(monkeypatch, graph_recorded, count):
    """With 61 images, the last batch of each epoch is smaller."""
    expected = trained_weights(monkeypatch, ClassifierModule, count)
    actual = trained_weights(monkeypatch, CudaGraphClassifierModule, count)
    assert graph_recorded == [True]
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-3, atol=1e-5)


@pytest.mark.gpu
def test_group_convolutions_train_as_without_graphs(monkeypatch, graph_recorded):
    """The tolerance is wider, because the gradients of cuDNN's convolutions depend on the order of additions."""
    expected, actual = (
        trained_weights(monkeypatch, module_class, 61, lambda: TIGraNet(PYRAMID, 3), precision="32")
        for module_class in (ClassifierModule, CudaGraphClassifierModule)
    )
    assert graph_recorded == [True]
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-2, atol=2e-3)


@pytest.mark.gpu
def test_two_trainings_give_the_same_weights(monkeypatch):
    first, second = (trained_weights(monkeypatch, CudaGraphClassifierModule, 61) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.gpu
def test_a_graph_is_recorded_in_bfloat16(monkeypatch, graph_recorded):
    weights = trained_weights(monkeypatch, CudaGraphClassifierModule, 64, precision="bf16")
    assert graph_recorded == [True]
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@pytest.mark.gpu
@pytest.mark.parametrize("channels", [1, 3])
def test_a_graph_has_all_changes_of_the_images_and_dropout(monkeypatch, graph_recorded, channels):
    """The average of the weights is computed outside the graph."""
    fields = {"weight_decay": 0.05, "shift": 0.1, "flip": True, "zoom": 0.2, "warp": 0.02, "as_is": 0.25, "tone": 0.3}
    fields |= {
        "tint": 0.1,
        "blur": 0.5,
        "cutout": 0.3,
        "smoothing": 0.1,
        "dropout": 0.3,
        "average": 0.8,
        "turned": True,
    }
    recipe, weights = replace(RECIPE, **fields), []
    images = LabelledImages(torch.rand(61, channels, 9, 12), torch.arange(61) % 3)
    for module_class in (ClassifierModule, CudaGraphClassifierModule):
        monkeypatch.setattr(sys.modules[fit.__module__], "CudaGraphClassifierModule", module_class)
        torch.manual_seed(0)
        weights.append(fit(TIGraNet(ARCHITECTURE, 3, channels), images, images, recipe).state_dict())
    assert graph_recorded == [True]
    for name, expected in weights[0].items():
        torch.testing.assert_close(weights[1][name], expected, rtol=1e-3, atol=1e-5)


class ReadsItsValues(nn.Module):
    """A network that cannot be recorded, because it reads a value back to the host."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(81, 3)

    def forward(self, images):
        x = self.linear(images.flatten(1))
        return x if float(x.detach().sum()) < 1e9 else -x


@pytest.mark.gpu
def test_a_network_that_cannot_be_recorded_is_trained_without_a_graph(monkeypatch, graph_recorded):
    expected = trained_weights(monkeypatch, ClassifierModule, 61, ReadsItsValues)
    actual = trained_weights(monkeypatch, CudaGraphClassifierModule, 61, ReadsItsValues)
    assert graph_recorded == [False]
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-4, atol=1e-6)


def test_the_cpu_uses_no_graphs(monkeypatch):
    monkeypatch.setattr(CudaGraphClassifierModule, "training_step", None)
    fit(TIGraNet(ARCHITECTURE, 3), data(16), None, Recipe(epochs=1, batch_size=8), hardware=Hardware("cpu"))
