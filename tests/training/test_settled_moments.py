"""Moments before a validation are those of training images under the current weights, and training never sees them."""

import csv

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.layers import Standardise
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.settled_moments import moment_batches, normalisations, recompute_moments

CPU = Hardware("cpu")


def data(seed=0, count=40):
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 4, 4, generator=generator)
    return LabelledImages(images, (images[..., :2].sum((1, 2, 3)) > images[..., 2:].sum((1, 2, 3))).long())


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 8), Standardise(8), nn.Linear(8, 2)
    )


def test_the_layers_with_running_estimates_are_found():
    module = network()
    assert normalisations(module) == [module[2], module[4]]
    assert not normalisations(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False)))
    net = TIGraNet("LC[2,3,4]-MO[3]-S[1]", 2)
    assert len(normalisations(net)) == 4  # two in MO, and the standardisations of images and statistics


def test_moments_of_one_batch_standardise_that_batch():
    """After the moments were computed from a batch, evaluation gives what training computes for this batch."""
    module, images = network(), data().images
    expected = module.train()(images)
    module(torch.rand(30, 1, 4, 4) * 5)  # estimates that do not fit
    modes = [part.training for part in module.modules()]
    recompute_moments(module, [images])
    assert [part.training for part in module.modules()] == modes
    assert (module[2].momentum, module[4].momentum) == (0.1, 0.1)
    # BatchNorm normalises by the biased variance, but keeps the unbiased one: they differ by 1 / n.
    torch.testing.assert_close(module.eval()(images), expected, rtol=0.05, atol=0.05)


def test_several_batches_are_averaged():
    layer = Standardise(3)
    first, second = torch.rand(5, 3), torch.rand(5, 3) + 2
    recompute_moments(layer, [first, second])
    torch.testing.assert_close(layer.mean, (first.mean(0) + second.mean(0)) / 2)


def test_random_numbers_are_not_used():
    module = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(16), nn.Linear(16, 2)).train()
    before = torch.get_rng_state()
    recompute_moments(module, moment_batches(data(), Recipe(epochs=1), torch.device("cpu")))
    assert torch.equal(torch.get_rng_state(), before)
    assert module.training


def test_the_batches_are_a_few_and_the_same_every_time():
    recipe = Recipe(epochs=1, batch_size=6, seed=3)
    batches = moment_batches(data(), recipe, torch.device("cpu"))
    assert [len(batch) for batch in batches] == [6, 6, 6, 6]
    again = moment_batches(data(), recipe, torch.device("cpu"))
    assert all(torch.equal(*pair) for pair in zip(batches, again, strict=True))
    assert moment_batches(data(count=1), recipe, torch.device("cpu")) == []


@pytest.mark.parametrize("average", [0.0, 0.8])
def test_validation_changes_nothing_but_is_measured_with_settled_moments(average, tmp_path):
    recipe = Recipe(epochs=3, batch_size=8, learning_rate=0.05, average=average)
    validated = fit(network(), data(), data(1), recipe, hardware=CPU, folder=tmp_path)
    alone = fit(network(), data(), None, recipe, hardware=CPU)
    for name, tensor in validated.state_dict().items():
        assert torch.equal(tensor, alone.state_dict()[name]), name
    recompute_moments(validated, moment_batches(data(), recipe, torch.device("cpu")))
    images, labels, _ = data(1)
    row = list(csv.DictReader((tmp_path / "history.csv").read_text().splitlines()))[-1]
    assert float(row["validation_loss"]) == pytest.approx(F.cross_entropy(validated(images), labels).item(), rel=1e-5)


def test_the_best_weights_are_kept_with_the_moments_that_they_were_validated_with(tmp_path):
    recipe = Recipe(epochs=6, batch_size=8, learning_rate=0.5, schedule="cosine", keep="best")
    module = fit(network(), data(), data(1), recipe, hardware=CPU, folder=tmp_path)
    losses = [
        float(row["validation_loss"]) for row in csv.DictReader((tmp_path / "history.csv").read_text().splitlines())
    ]
    images, labels, _ = data(1)
    assert F.cross_entropy(module(images), labels).item() == pytest.approx(min(losses), rel=1e-5)
