"""Images in memory that only detectors see: two clusters of features, and what a network makes of them."""

import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation.unknown.representation import KnownImages, Representation, known_images, represent

CLASSES = 3


@pytest.fixture(scope="session")
def net() -> TIGraNet:
    """A network with random weights, and standardised features that fit the images."""
    torch.manual_seed(0)
    net = TIGraNet("SC[3,2]-S[2]-FC[8]", CLASSES).eval()
    net.standardise.mean.copy_(torch.rand(net.num_features))
    net.standardise.variance.copy_(0.5 + torch.rand(net.num_features))
    return net


def measurements(net: TIGraNet, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw positive features around one centre per class, and contrasts from 0.1 to 0.2."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % CLASSES
    centres = 1 + torch.rand(CLASSES, net.num_features, generator=torch.Generator().manual_seed(9))
    features = centres[labels] * (0.2 * torch.randn(count, net.num_features, generator=generator)).exp()
    contrast = 0.1 + 0.1 * torch.rand(count, 1, generator=generator)
    return torch.cat([features, contrast], dim=1).double(), labels


@pytest.fixture(scope="session")
def known(net) -> KnownImages:
    """Sixty training images."""
    return known_images(net, *measurements(net, 60, seed=0))


@pytest.fixture(scope="session")
def validation(net) -> Representation:
    """Thirty other images of the same classes."""
    return represent(net)(measurements(net, 30, seed=1)[0])


@pytest.fixture(scope="session")
def others(net) -> Representation:
    """Images whose features are ten times as large."""
    rows = measurements(net, 20, seed=2)[0]
    return represent(net)(torch.cat([10 * rows[:, :-1], rows[:, -1:]], dim=1))
