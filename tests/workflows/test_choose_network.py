from dataclasses import replace

import pytest
import torch

from tigranet import choose_architecture
from tigranet.architecture import PRESETS, Architecture
from tigranet.choose_architecture import PresetRange, choose_preset
from tigranet.fine_tuning import START_DATA, Start
from tigranet.training import Recipe
from tigranet.workflows.choose_network import NetworkOptions, default_network, requested_network


@pytest.mark.parametrize("accurate", [False, True])
def test_a_default_network_is_the_preset_for_these_images(small, accurate):
    chosen = default_network(small, accurate, NetworkOptions())
    assert chosen.name == choose_preset(30, 28, gpu=accurate)
    assert str(chosen.architecture) == PRESETS[chosen.name]
    assert chosen.new_network(small).architecture == chosen.architecture


def test_an_accurate_network_from_a_trained_one_has_half_of_the_epochs_on_a_cpu(small):
    full = Recipe.for_network(default_network(small, True, NetworkOptions()).new_network(small), 30)
    assert default_network(small, True, NetworkOptions(), gpu=True).recipe.epochs == full.epochs
    assert default_network(small, True, NetworkOptions()).recipe.epochs == full.epochs / 2
    assert default_network(small, True, NetworkOptions(recipe={"epochs": 7})).recipe.epochs == 7
    assert default_network(small, True, NetworkOptions(shipped_starts=False)).recipe.epochs == full.epochs
    fast = default_network(small, False, NetworkOptions())
    assert fast.recipe == Recipe.for_network(fast.new_network(small), 30)


def test_a_default_network_starts_from_a_shipped_one_unless_the_user_does_not_want_it(small):
    assert default_network(small, True, NetworkOptions()).start.name == "pyramid-cifar10"
    options = NetworkOptions(shipped_starts=False)
    assert default_network(small, True, options).start is None
    assert default_network(replace(small, name=START_DATA), True, NetworkOptions()).start is None


def test_what_the_user_asks_for_reaches_the_network(small):
    options = NetworkOptions(boundary="torus", window="disc", margin=3, seed=5, recipe={"learning_rate": 0.5})
    chosen = requested_network(small, Architecture.parse("SC[2,2]-S[2]"), options)
    network = chosen.new_network(small)
    assert (network.boundary, network.window, network.margin) == ("torus", "disc", 3)
    assert (network.class_names, network.image_size) == (small.class_names, 28)
    assert (chosen.recipe.seed, chosen.recipe.learning_rate) == (5, 0.5)
    assert chosen.origin() == {"window": "disc", "init": None}


def test_the_seed_decides_the_weights_and_other_random_numbers_are_left_alone(small):
    def weights(seed):
        chosen = requested_network(small, Architecture.parse("MC[2,2]-S[2]"), NetworkOptions(seed=seed))
        return torch.cat([parameter.flatten() for parameter in chosen.new_network(small).parameters()])

    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))
    assert torch.equal(torch.rand(3), expected)


def test_a_start_gives_its_weights_and_gets_the_classes_of_the_data(small):
    first = requested_network(small, Architecture.parse("MC[2,2]-S[2]"), NetworkOptions(seed=1)).new_network(small)
    chosen = requested_network(small, first.architecture, NetworkOptions(seed=2), Start("model/", first))
    network = chosen.new_network(small)
    assert all(map(torch.equal, network.parameters(), first.parameters()))
    assert chosen.origin()["init"] == "model/"
    assert chosen.describe_start() == "starts from 'model/'"


def test_the_longer_side_of_the_images_decides(small, monkeypatch):
    rows = (PresetRange("paper-small", max_side=27), PresetRange("paper"))
    monkeypatch.setattr(choose_architecture, "CPU_PRESETS", rows)
    narrow = small.train._replace(images=small.train.images[..., :10])
    assert default_network(replace(small, train=narrow), False, NetworkOptions()).name == "paper"
