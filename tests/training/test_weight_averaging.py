"""The weights at the end are the average of the weights after each step, computed again from a record of them."""

import csv

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from tigranet.data import LabelledImages
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.settled_moments import moment_batches
from tigranet.training.weight_averaging import decay_at

CPU = Hardware("cpu")


def data(seed=0, count=40):
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 4, 4, generator=generator)
    return LabelledImages(images, (images[..., :2].sum((1, 2, 3)) > images[..., 2:].sum((1, 2, 3))).long())


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 2))


def train(average, **arguments):
    """Return the trained network and the states after each step."""
    module, states = network(), []
    handle = register_optimizer_step_post_hook(
        lambda *_: states.append({name: tensor.clone() for name, tensor in module.state_dict().items()})
    )
    try:
        recipe = Recipe(epochs=6, batch_size=8, learning_rate=0.05, average=average)
        return fit(module, data(), data(1), recipe, hardware=CPU, **arguments), states
    finally:
        handle.remove()


def history(folder):
    return list(csv.DictReader((folder / "history.csv").read_text().splitlines()))


@pytest.mark.parametrize("decay", [0.5, 0.8, 0.999])
def test_the_weights_are_the_average_over_the_steps(decay):
    module, states = train(decay)
    assert len(states) == 30
    coefficients = torch.zeros(30, dtype=torch.float64)
    for step in range(30):
        previous = min(decay, step / (step + 10))
        coefficients *= previous
        coefficients[step] = 1 - previous
    assert coefficients.sum().item() == pytest.approx(1)
    for name, tensor in module.state_dict().items():
        if name.endswith(("weight", "bias")):
            expected = torch.tensordot(coefficients, torch.stack([state[name] for state in states]).double(), 1)
            torch.testing.assert_close(tensor, expected.float())
            assert not torch.equal(tensor, states[-1][name])
    batches = moment_batches(data(), Recipe(epochs=1, batch_size=8), torch.device("cpu"))
    means = torch.stack([batch.flatten(1).mean(0) for batch in batches])
    torch.testing.assert_close(module[1].running_mean, means.mean(0))  # moments that belong to these weights


def test_averaging_does_not_change_the_steps():
    for state, other in zip(train(0.9)[1], train(0.0)[1], strict=True):
        assert all(torch.equal(state[name], other[name]) for name in state)


def test_the_average_is_what_is_validated(tmp_path):
    module, states = train(0.8, folder=tmp_path)
    images, labels, _ = data(1)
    row = history(tmp_path)[-1]
    assert float(row["validation_loss"]) == pytest.approx(F.cross_entropy(module(images), labels).item(), rel=1e-5)
    last = network().eval()
    last.load_state_dict(states[-1])
    assert float(row["validation_loss"]) != pytest.approx(F.cross_entropy(last(images), labels).item(), rel=1e-4)


def test_the_best_weights_are_averages_too(tmp_path):
    module = network()
    recipe = Recipe(epochs=8, batch_size=8, learning_rate=1.0, schedule="cosine", keep="best", average=0.8)
    fit(module, data(), data(1), recipe, folder=tmp_path, hardware=CPU)
    images, labels, _ = data(1)
    losses = [float(row["validation_loss"]) for row in history(tmp_path)]
    assert F.cross_entropy(module(images), labels).item() == pytest.approx(min(losses), rel=1e-4)


def test_a_mask_of_infinity_stays_as_it_is():
    module = network()
    module.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    fit(module, data(), None, Recipe(epochs=1, average=0.9), hardware=CPU)
    assert module.mask.tolist() == [0, -torch.inf]
    assert all(parameter.isfinite().all() for parameter in module.parameters())


def test_the_memory_grows_with_the_steps_up_to_the_decay():
    decays = [decay_at(step, 0.99) for step in range(1, 2000)]
    assert decays[0] == 0
    assert decays == sorted(decays)
    assert max(decays) == 0.99
    assert decay_at(1000, 0.9999) == pytest.approx(1 - 10 / 1009)
