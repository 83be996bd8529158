"""Features that do not change when an image is rotated, from random or from trained weights."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from tigranet import InvariantFeatures, TIGraNet
from tigranet.feature_network import FEATURE_ARCHITECTURE


@pytest.fixture(scope="module")
def images():
    """Images (8, 8) of digits, in [0, 1]."""
    return load_digits(n_class=3).images[:20] / 16


def test_the_default_features_do_not_change_when_the_image_is_rotated(images):
    features = InvariantFeatures().fit(images)
    assert str(features.model_.architecture) == FEATURE_ARCHITECTURE
    turned = features.transform(np.rot90(images, axes=(1, 2)))
    np.testing.assert_allclose(turned, features.transform(images), rtol=1e-3, atol=1e-4)


def test_a_shipped_network_gives_its_own_features(images):
    shipped = InvariantFeatures("paper-mnist-012").fit(images)
    expected = TIGraNet.from_pretrained("paper-mnist-012").features(torch.from_numpy(images[:, None]).float())
    np.testing.assert_allclose(shipped.transform(images), expected.detach(), rtol=1e-5)
    with pytest.raises(ValueError, match="channels"):
        InvariantFeatures("paper-mnist-012").fit(np.stack([images] * 3, -1))
