"""A misclassified image has a cross-entropy of at least ln 2, so a loss bounds the number of errors."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tigranet.data import LabelledImages
from tigranet.training.training_contradiction import ContradictionWarning, least_accuracy, warn_of_contradiction


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_no_logits_have_a_lower_accuracy_than_their_loss_allows(smoothing, scale):
    for _ in range(100):
        labels = torch.randint(0, 4, (20,))
        logits = scale * (torch.randn(20, 4) + 3 * F.one_hot(labels, 4))
        loss = F.cross_entropy(logits, labels, label_smoothing=smoothing).item()
        accuracy = (logits.argmax(1) == labels).double().mean().item()
        assert accuracy >= least_accuracy(loss, smoothing) - 1e-6


def images(count=30):
    labels = torch.arange(count) % 2
    return LabelledImages(labels[:, None, None, None] * torch.ones(1, 1, 2, 2), labels)


class Fixed(nn.Module):
    """Gives class 1 to bright images, or the opposite."""

    def __init__(self, sign):
        super().__init__()
        self.sign = nn.Parameter(torch.tensor(sign))

    def forward(self, x):
        bright = self.sign * (x.mean((1, 2, 3)) - 0.5)
        return torch.stack([-bright, bright], 1)


def test_a_network_that_is_much_worse_than_its_loss_is_reported():
    module = Fixed(-1.0).train()
    with pytest.warns(ContradictionWarning, match=r"0\.10.*86 %.* 0 %.*learning rate"):
        warn_of_contradiction(module, images(), 0.1)
    assert module.training


@pytest.mark.parametrize(("sign", "loss"), [(1.0, 0.1), (-1.0, 0.7), (-1.0, float("inf")), (-1.0, 0.6)])
def test_nothing_is_said_where_nothing_is_contradicted(sign, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_contradiction(Fixed(sign), images(2000), loss)
