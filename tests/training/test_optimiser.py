import pytest
import torch
from torch import nn

from tigranet import TIGraNet
from tigranet.training import Recipe
from tigranet.training.optimiser import create_optimiser, parameter_groups


def names(module, parameters):
    by_identity = {id(parameter): name for name, parameter in module.named_parameters()}
    return {by_identity[id(parameter)] for parameter in parameters}


def test_without_weight_decay_it_is_adam_with_all_parameters():
    module = nn.Linear(3, 2)
    optimiser = create_optimiser(module, Recipe(epochs=1, learning_rate=0.02))
    assert type(optimiser) is torch.optim.Adam
    (group,) = optimiser.param_groups
    assert group["params"] == list(module.parameters())
    assert (group["lr"], group["weight_decay"]) == (0.02, 0)


@pytest.mark.parametrize("architecture", ["SC[3,2]-DP[9]-S[2]-FC[4]", "MC[4,2]-OP[3]-MC[4,2]-S[1]"])
def test_weights_decay_but_neither_biases_nor_normalisations(architecture):
    """The bias of a mixed convolution has two dimensions."""
    network = nn.ModuleDict({"net": TIGraNet(architecture, 3), "norm": nn.BatchNorm2d(3)})
    decaying, others = (names(network, group["params"]) for group in parameter_groups(network, 0.1))
    assert decaying.isdisjoint(others)
    assert decaying | others == {name for name, _ in network.named_parameters()}
    assert {"net.classifier.0.weight", "net.graph_layers.0.alpha"} <= decaying
    assert {"norm.weight", "norm.bias"} <= others
    assert not any(name.endswith(("bias", "beta")) for name in decaying)
    assert all(name.endswith(("weight", "alpha", "mixtures")) for name in decaying)


def test_a_step_without_gradient_shrinks_the_weights_by_the_rate_times_the_decay():
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    optimiser = create_optimiser(module, Recipe(epochs=1, learning_rate=0.1, weight_decay=0.5))
    for _ in range(2):
        for parameter in module.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimiser.step()
    for name, parameter in module.named_parameters():
        factor = 0.95**2 if name == "0.weight" else 1
        torch.testing.assert_close(parameter, factor * before[name])


def test_a_network_without_biases_can_be_trained():
    optimiser = create_optimiser(nn.Linear(3, 2, bias=False), Recipe(epochs=1, weight_decay=0.1))
    assert [len(group["params"]) for group in optimiser.param_groups] == [1, 0]
