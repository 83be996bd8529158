"""The images that a network is trained on, and the loss."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet.data import LabelledImages
from tigranet.training import Recipe
from tigranet.training.lightning_module import ClassifierModule


class Recorder(nn.Module):
    """Keeps its inputs and returns the same logits for every image."""

    def __init__(self):
        super().__init__()
        self.logits, self.inputs = nn.Parameter(torch.tensor([0.3, -1.0, 0.2])), []

    def forward(self, images):
        self.inputs.append(images.clone())
        return self.logits.expand(len(images), 3)


def one_step(images, indices=None, weights=None, **fields):
    """Return the loss of one batch, the images that the network received, and the network."""
    network = Recorder()
    data = LabelledImages(images, torch.arange(len(images)) % 3, weights)
    module = ClassifierModule(network, data, None, Recipe(1, len(images), **fields))
    module._trainer = SimpleNamespace(world_size=1, global_rank=0)
    loss = module.batch_loss(torch.arange(len(images)) if indices is None else indices)
    (inputs,) = network.inputs
    return loss.detach(), inputs, network


def test_a_fraction_of_the_images_is_not_deformed():
    torch.manual_seed(0)
    images = torch.rand(400, 1, 7, 7)
    _, inputs, _ = one_step(images, zoom=0.2, stretch=0.1, warp=0.03, as_is=0.25)
    same = (inputs == images).flatten(1).all(1)
    assert 0.18 < same.float().mean() < 0.32
    assert not (inputs[~same] == images[~same]).flatten(1).all(1).any()
    _, inputs, _ = one_step(images, zoom=0.2)
    assert not (inputs == images).flatten(1).all(1).any()


@pytest.mark.parametrize("fields", [{"jitter": 0.0}, {"zoom": 0.2, "as_is": 0.9}])
def test_images_that_are_not_deformed_have_another_tone_too(fields):
    images = torch.rand(40, 1, 7, 7)
    _, inputs, _ = one_step(images, tone=0.5, **fields)
    brightness = inputs.flatten(1).mean(1) / images.flatten(1).mean(1)
    assert len(set(brightness.tolist())) == 40
    assert 0.5 < brightness.min() < 0.8
    assert 1.2 < brightness.max() < 2.2


def test_a_smoothed_label_is_spread_over_all_classes():
    loss, _, network = one_step(torch.rand(6, 1, 5, 5), smoothing=0.3)
    log_probabilities = network.logits.detach().log_softmax(0)
    targets = torch.full((3, 3), 0.1) + 0.7 * torch.eye(3)
    torch.testing.assert_close(loss, -(targets @ log_probabilities).mean())


def test_the_loss_of_a_smaller_batch_is_the_mean_over_its_own_images():
    """The last batch of an epoch has fewer images than the batch size."""
    images, indices = torch.rand(9, 1, 5, 5), torch.tensor([7, 3])
    loss, inputs, network = one_step(images, indices, jitter=0.0)
    assert torch.equal(inputs, images[indices])
    torch.testing.assert_close(loss, F.cross_entropy(network.logits.detach().expand(2, 3), indices % 3))


def test_the_loss_is_the_mean_with_the_weights_of_the_images():
    weights = torch.tensor([1.0, 0.0, 2.0, 0.5])
    loss, _, network = one_step(torch.rand(4, 1, 5, 5), weights=weights)
    losses = F.cross_entropy(network.logits.detach().expand(4, 3), torch.arange(4) % 3, reduction="none")
    torch.testing.assert_close(loss, (weights * losses).sum() / 3.5)
