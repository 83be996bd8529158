import pytest
import torch
from torch import nn

from tigranet.data import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.dropout import dropout_during_training


class WithDropout(nn.Module):
    """Keeps the share of features that were set to zero in each training step."""

    def __init__(self, probability=0.0):
        super().__init__()
        self.dropout, self.classifier, self.shares = nn.Dropout(probability), nn.Linear(400, 2), []

    def forward(self, images):
        features = self.dropout(images.flatten(1))
        if self.training:
            self.shares.append((features == 0).float().mean().item())
        return self.classifier(features)


def train(module, **fields):
    data = LabelledImages(torch.rand(40, 1, 20, 20) + 0.1, torch.arange(40) % 2)
    recipe = Recipe(epochs=2, batch_size=20, jitter=0.0, **fields)
    return fit(module, data, None, recipe, hardware=Hardware("cpu"))


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_the_probability_holds_during_the_training_only(own):
    module = train(WithDropout(own), dropout=0.3)
    assert module.shares == pytest.approx([0.3] * 4, abs=0.03)
    assert module.dropout.p == own


@pytest.mark.parametrize("own", [0.0, 0.5])
def test_probability_zero_leaves_the_network_as_it_is(own):
    module = train(WithDropout(own))
    assert module.shares == pytest.approx([own] * 4, abs=0.03)
    assert module.dropout.p == own


def test_the_probability_is_restored_after_an_error():
    module = WithDropout()
    with pytest.raises(RuntimeError, match="mat1"), dropout_during_training(module, 0.2):
        module(torch.rand(3, 5))
    assert module.dropout.p == 0


class OtherAttribute(nn.Linear):
    dropout = 0.5


@pytest.mark.parametrize("network", [nn.Linear, OtherAttribute])
def test_a_network_without_dropout_is_an_error_that_names_it(network):
    with pytest.raises(ValueError, match=rf"dropout is 0\.3, but {network.__name__} .*nn\.Dropout.* dropout=0"):
        train(network(400, 2), dropout=0.3)
