import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation import accuracy
from tigranet.evaluation.plain_cnn import plain_cnn
from tigranet.notation import FC
from tigranet.training import Recipe


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


def test_it_is_as_large_has_the_same_last_layers_and_has_learned(mnist_012):
    net = TIGraNet("paper-small", 3)
    rival = plain_cnn(net, mnist_012, Recipe(epochs=4))
    assert parameters(rival) == pytest.approx(parameters(net), rel=0.15)
    assert rival.architecture.layers[-3:] == (FC(50), FC(30), FC(10))
    assert accuracy(rival, mnist_012.test) > 80
    assert not rival.training


def test_it_is_that_of_the_seed_and_leaves_the_random_numbers_alone(mnist_012):
    net = TIGraNet("SC[2,2]-S[2]", 3)
    torch.manual_seed(5)
    first = plain_cnn(net, mnist_012, Recipe(epochs=1, batch_size=250))
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), after)
    second = plain_cnn(net, mnist_012, Recipe(epochs=1, batch_size=250))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
