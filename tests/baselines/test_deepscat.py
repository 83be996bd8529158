import copy
import io
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tigranet.baselines import DeepScat, ScatArchitecture
from tigranet.baselines.deepscat import PCA, W
from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.evaluation.accuracy import accuracy, moved_accuracy, predict
from tigranet.testing import SQUARE


@pytest.fixture(scope="module")
def fitted(mnist_012):
    images, labels = mnist_012.train.images[:240], mnist_012.train.labels[:240]
    return DeepScat("paper", num_classes=3).fit(images, labels)


@pytest.fixture(scope="module")
def small():
    images, labels = torch.rand(24, 2, 9, 11, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 3
    images[labels == 1, :, 3:6] += 1
    images[labels == 2, 1, 4, 4] += 9
    return DeepScat("W[2,2]-PCA[3]", num_classes=3, in_maps=2).fit(images, labels), images, labels


# It is the network of the paper


@given(st.integers(1, 2), st.integers(1, 9), st.integers(1, 99))
def test_parsing_the_text_of_an_architecture_gives_it_back(order, scales, dimension):
    architecture = ScatArchitecture((W(order, scales), PCA(dimension)))
    assert ScatArchitecture.parse(str(architecture)) == architecture


def test_the_preset_is_the_row_of_table_1():
    assert ScatArchitecture.parse("W[2, 5]-PCA[20]").layers == (W(2, 5), PCA(20))
    assert str(ScatArchitecture.parse("paper")) == "W[2,5]-PCA[20]"


def test_logits_equal_an_independent_computation(small):
    net, images, labels = small
    phi = net.features(images).double()
    phi = phi / phi.std(0, correction=0)
    logits = []
    for c in range(3):
        mean = phi[labels == c].mean(0)
        covariance = (phi[labels == c] - mean).T @ (phi[labels == c] - mean)
        v = torch.linalg.eigh(covariance)[1][:, -3:]
        offset = phi - mean
        logits.append((offset @ v).square().sum(1) - offset.square().sum(1))
    torch.testing.assert_close(net(images).double(), torch.stack(logits, 1), rtol=1e-3, atol=1e-3)


def test_it_has_buffers_and_no_parameters(small):
    net, _, _ = small
    assert list(net.parameters()) == []
    assert set(net.state_dict()) == {"spread", "classifier.means", "classifier.directions", "classifier.fitted"}


# It has the symmetry it claims


def test_quarter_turns_and_shifts_hardly_change_the_features_of_digits(fitted, mnist_012):
    digits = mnist_012.test.images[:10]
    upright = fitted.features(digits)
    for rotation in (symmetry for name, symmetry in SQUARE.items() if "reflected" not in name):
        assert ((fitted.features(rotation(digits)) - upright).norm(dim=1) < 0.01 * upright.norm(dim=1)).all()
    shifted = fitted.features(torch.roll(digits, (1, -2), (2, 3)))
    assert ((shifted - upright).norm(dim=1) < 0.01 * upright.norm(dim=1)).all()


# It learns, and is evaluated like other networks


def test_it_classifies_upright_rotated_and_shifted_digits(fitted, mnist_012):
    assert accuracy(fitted, mnist_012.test) >= 95
    sample = mnist_012.test._replace(images=mnist_012.test.images[:10], labels=mnist_012.test.labels[:10])
    assert moved_accuracy(fitted, sample, ROTATED).mean >= 90
    assert moved_accuracy(fitted, sample, Isometry(max_shift=2)).mean >= 90


def test_predictions_are_the_largest_logits(small):
    net, images, labels = small
    assert torch.equal(net.predict(images), net(images).argmax(1))
    assert torch.equal(net.predict(images), predict(net, images, batch_size=5))
    assert (net.predict(images) == labels).double().mean() > 0.9


def test_constant_features_give_finite_logits():
    images = torch.zeros(6, 1, 8, 8)
    images[1::2, :, 3:5, 3:5] = torch.tensor([1.0, 2.0, 3.0])[:, None, None, None]
    net = DeepScat("W[1,2]-PCA[1]", num_classes=2).fit(images, torch.arange(6) % 2)
    assert net(images).isfinite().all()
    assert net.predict(images).tolist() == [0, 1, 0, 1, 0, 1]
    assert DeepScat("W[1,2]-PCA[1]", 1).fit(images[:1], torch.zeros(1, dtype=torch.long))(images).isfinite().all()


def test_fitting_is_deterministic_and_uses_no_random_numbers(small):
    net, images, labels = small
    state = torch.random.get_rng_state()
    refitted = DeepScat("W[2,2]-PCA[3]", 3, 2).fit(images, labels)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(refitted(images), net(images))


def test_progress_is_shown_on_the_console(small):
    _, images, labels = small
    console = Console(file=io.StringIO(), force_terminal=True)
    DeepScat("W[1,1]-PCA[1]", 3, 2).fit(images, labels, console)
    assert "Scattering" in console.file.getvalue()


# It is a well-behaved module


def test_images_may_have_another_size_than_the_training_images(fitted):
    assert fitted(torch.rand(1, 1, 34, 20)).shape == (1, 3)


def test_the_state_dict_is_complete(small):
    net, images, _ = small
    copied = DeepScat("W[2,2]-PCA[3]", 3, 2)
    copied.load_state_dict(net.state_dict())
    assert torch.equal(copied(images), net(images))
    assert torch.equal(copy.deepcopy(net)(images), net(images))
    assert net.extra_repr() == "'W[2,2]-PCA[3]', num_classes=3, in_maps=2"


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("W[5]-PCA[20]", ["layer 1", "'W[5]'", "'W[5]-PCA[20]'", "order, scales", "1"]),
        ("W[3,5]-PCA[20]", ["layer 1", "'W[3,5]'", "order", "at most 2", "3"]),
        ("W[2,0]-PCA[20]", ["layer 1", "'W[2,0]'", "scales", "1", "0"]),
        ("PCA[20]", ["layer 1", "'PCA[20]'", "a DeepScat has one W layer, then one PCA layer"]),
        ("W[2,5]", ["PCA", "'W[2,5]'"]),
        ("W[2,5]-PCA[20]-PCA[3]", ["layer 3", "'PCA[3]'"]),
        ("papr", ["'papr'", "'paper'"]),
    ],
)
def test_parse_errors_name_the_layer_and_the_architecture(text, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as error:
        ScatArchitecture.parse(text)
    for fragment in fragments:
        assert fragment in str(error.value)


def test_invalid_inputs_are_rejected(without_shape_checks, small):
    net, images, labels = small
    with pytest.raises(ValueError, match=r"at least 1.*0 and 1"):
        DeepScat("paper", 0)
    with pytest.raises(ValueError, match=r"dimension 20.*9 features.*at most 8"):
        DeepScat("W[1,2]-PCA[20]", 3)
    with pytest.raises(RuntimeError, match="call fit"):
        DeepScat("paper", 3)(torch.rand(1, 1, 9, 9))
    with pytest.raises(ValueError, match=r"\(batch, 2, height, width\).*\(24, 1, 9, 11\)"):
        net(images[:, :1])
    with pytest.raises(ValueError, match=r"24 images.*\(3,\)"):
        net.fit(images, labels[:3])
    with pytest.raises(ValueError, match=r"label 3:.*4 classes"):
        DeepScat("paper", 4, 2).fit(images, labels)
