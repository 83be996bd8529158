from dataclasses import replace

import pytest
import torch

from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation import accuracy
from tigranet.notation import FC
from tigranet.training import Recipe
from tigranet.workflows.baselines import recipe_with_rotations, train_paper_baselines, train_plain_cnn
from tigranet.workflows.measured_training import count_parameters


def test_the_plain_cnn_is_as_large_has_the_same_last_layers_and_has_learned(mnist_012):
    net = TIGraNet("paper-small", 3)
    cnn = train_plain_cnn(net, mnist_012, Recipe(epochs=4))
    assert count_parameters(cnn) == pytest.approx(count_parameters(net), rel=0.15)
    assert cnn.architecture.layers[-3:] == (FC(50), FC(30), FC(10))
    assert accuracy(cnn, mnist_012.test) > 80
    assert not cnn.training


def test_the_plain_cnn_depends_on_the_seed_only_and_leaves_the_random_numbers_alone(mnist_012):
    net = TIGraNet("SC[2,2]-S[2]", 3)
    torch.manual_seed(5)
    first = train_plain_cnn(net, mnist_012, Recipe(epochs=1, batch_size=250))
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), after)
    second = train_plain_cnn(net, mnist_012, Recipe(epochs=1, batch_size=250))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_papers_baselines_are_as_large_as_the_network_and_trained_on_the_data(mnist_012):
    few = LabelledImages(mnist_012.train.images[:20], mnist_012.train.labels[:20])
    data = DataSet("few", mnist_012.class_names, few, few.take([]), few)
    small = train_paper_baselines(TIGraNet("paper-small", 3), data, epochs=1)
    assert list(small) == ["ConvNet", "STN"]
    assert str(small["STN"].architecture) == "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
    large = train_paper_baselines(TIGraNet("paper", 3), data, epochs=1)
    assert "FC[500]" in str(large["ConvNet"].architecture)
    again = train_paper_baselines(TIGraNet("paper-small", 3), data, epochs=1)
    assert torch.equal(again["STN"](few.images), small["STN"](few.images))
    longer = train_paper_baselines(TIGraNet("paper-small", 3), data, epochs=3)
    assert not torch.equal(longer["STN"](few.images), small["STN"](few.images))


@pytest.mark.parametrize(("layers", "factor"), [("SC[2,2]-S[2]", 1), ("MC[2,2]-S[2]", 3)])
def test_a_cnn_on_rotated_images_is_trained_by_its_own_recipe_in_proportion(small, layers, factor):
    network = TIGraNet(layers, 3)
    default = Recipe.for_network(network, len(small.train.labels), seed=5, balanced=True)
    recipe = recipe_with_rotations(replace(default, epochs=default.epochs // 2, zoom=0.1), network, small)
    assert recipe.epochs == pytest.approx(factor * default.epochs / 2, rel=0.01)
    assert (recipe.turned, recipe.seed, recipe.balanced, recipe.zoom) == (True, 5, True, 0.0)
    assert recipe_with_rotations(replace(default, epochs=1), network, small).epochs >= 1
