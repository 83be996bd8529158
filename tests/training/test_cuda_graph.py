"""A step as one CUDA graph against the same training without: run on a machine with a GPU."""

import sys

import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.data.dataset import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.cuda_graph import CudaGraphClassifierModule
from tigranet.training.lightning_module import ClassifierModule

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
SMALL = "SC[3,2]-DP[30]-SC[4,2]-S[3]-FC[8]"
RECIPE = Recipe(epochs=6, batch_size=8, learning_rate=3e-3)


def data(count, seed=0):
    torch.manual_seed(seed)
    return LabelledImages(torch.rand(count, 1, 9, 9), torch.arange(count) % 3)


def trained(monkeypatch, kind, count, make=lambda: TIGraNet(SMALL, 3), **hardware):
    monkeypatch.setattr(sys.modules[fit.__module__], "CudaGraphClassifierModule", kind)
    torch.manual_seed(0)
    return fit(make(), data(count), data(9, 1), RECIPE, hardware=Hardware(**hardware)).state_dict()


@pytest.fixture
def recorded(monkeypatch):
    """Whether a graph was recorded, training by training."""
    seen = []
    plain = CudaGraphClassifierModule.on_fit_end
    monkeypatch.setattr(
        CudaGraphClassifierModule, "on_fit_end", lambda self: (seen.append(self.graph is not None), plain(self))
    )
    return seen


@on_gpu
@pytest.mark.parametrize("count", [64, 61])
def test_it_ends_with_the_weights_of_the_training_that_is_not_recorded(monkeypatch, recorded, count):
    """With a smaller last batch in each epoch, too."""
    plain = trained(monkeypatch, ClassifierModule, count)
    replayed = trained(monkeypatch, CudaGraphClassifierModule, count)
    assert recorded == [True]
    for name in plain:
        torch.testing.assert_close(replayed[name], plain[name], rtol=1e-3, atol=1e-5)


@on_gpu
def test_twice_the_same_is_the_same(monkeypatch):
    first, second = (trained(monkeypatch, CudaGraphClassifierModule, 61) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


@on_gpu
def test_it_is_recorded_in_bfloat16(monkeypatch, recorded):
    weights = trained(monkeypatch, CudaGraphClassifierModule, 64, precision="bf16")
    assert recorded == [True]
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


class Looks(nn.Module):
    """Cannot be recorded: it asks for a number that is still being computed."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(81, 3)

    def forward(self, images):
        x = self.linear(images.flatten(1))
        return x if float(x.detach().sum()) < 1e9 else -x


@on_gpu
def test_what_cannot_be_recorded_is_trained_all_the_same(monkeypatch, recorded):
    plain = trained(monkeypatch, ClassifierModule, 61, Looks)
    other = trained(monkeypatch, CudaGraphClassifierModule, 61, Looks)
    assert recorded == [False]
    for name in plain:
        torch.testing.assert_close(other[name], plain[name], rtol=1e-4, atol=1e-6)


def test_without_a_gpu_nothing_is_recorded(monkeypatch):
    monkeypatch.setattr(CudaGraphClassifierModule, "training_step", None)
    fit(TIGraNet(SMALL, 3), data(16), None, Recipe(epochs=1, batch_size=8), hardware=Hardware("cpu"))


@pytest.mark.parametrize(
    ("precision", "device", "within"),
    [("tf32", "cuda", "high"), ("32", "cuda", "highest"), ("tf32", "cpu", "highest")],
)
def test_matrix_products_are_shorter_while_a_gpu_trains_and_as_before_afterwards(precision, device, within):
    usual = torch.get_float32_matmul_precision()
    with Hardware(precision=precision).matrix_products(torch.device(device)):
        assert torch.get_float32_matmul_precision() == within
    assert torch.get_float32_matmul_precision() == usual == "highest"
