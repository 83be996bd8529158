import json
from dataclasses import replace

import pytest
import torch

from tigranet import TIGraNet
from tigranet.training import Recipe
from tigranet.workflows.trained_network import RECIPE_FILE, train_once

RECIPE = Recipe(epochs=3)


def new_network(**options):
    return TIGraNet("SC[2,2]-S[2]", 3, **options)


class Training:
    """Counts how many times a network was trained."""

    def __init__(self, network):
        self.network, self.count = network, 0

    def __call__(self):
        self.count += 1
        with torch.no_grad():
            for parameter in self.network.parameters():
                parameter.add_(1.0)
        return 12.5


def train_in(folder, network, recipe=RECIPE):
    training = Training(network)
    assert train_once(folder, network, recipe, training) == 12.5
    return training.count


def test_the_same_network_with_the_same_recipe_is_trained_once(tmp_path):
    first, second = new_network(), new_network()
    assert train_in(tmp_path / "run", first) == 1
    assert train_in(tmp_path / "run", second) == 0
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(second.eval()(images), first.eval()(images), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("network", "recipe"),
    [({"window": "disc"}, RECIPE), ({}, replace(RECIPE, learning_rate=0.5))],
    ids=["network", "recipe"],
)
def test_another_one_replaces_it(tmp_path, network, recipe):
    train_in(tmp_path, new_network())
    assert train_in(tmp_path, new_network(**network), recipe) == 1
    assert train_in(tmp_path, new_network(**network), recipe) == 0
    assert train_in(tmp_path, new_network()) == 1


def test_a_network_whose_training_was_interrupted_is_trained_again(tmp_path):
    train_in(tmp_path, new_network())
    changed = replace(RECIPE, epochs=4)
    with pytest.raises(KeyboardInterrupt):
        train_once(tmp_path, new_network(), changed, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert not (tmp_path / RECIPE_FILE).exists()
    assert train_in(tmp_path, new_network(), changed) == 1


def test_a_damaged_recipe_is_named(tmp_path):
    train_in(tmp_path, new_network())
    (tmp_path / RECIPE_FILE).write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=RECIPE_FILE):
        train_in(tmp_path, new_network())
