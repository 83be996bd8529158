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
    some = slice(240)
    return DeepScat("paper", num_classes=3).fit(mnist_012.train.images[some], mnist_012.train.labels[some])


@pytest.fixture(scope="module")
def small():
    images, labels = torch.rand(24, 2, 9, 11, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 3
    images[labels == 1, :, 3:6] += 1
    images[labels == 2, 1, 4, 4] += 9
    return DeepScat("W[2,2]-PCA[3]", num_classes=3, in_maps=2).fit(images, labels), images, labels


# It is what the paper says


@given(st.integers(1, 2), st.integers(1, 9), st.integers(1, 99))
def test_it_prints_back_exactly(order, scales, dimension):
    architecture = ScatArchitecture((W(order, scales), PCA(dimension)))
    assert ScatArchitecture.parse(str(architecture)) == architecture


def test_the_row_of_table_1():
    assert ScatArchitecture.parse("W[2, 5]-PCA[20]").layers == (W(2, 5), PCA(20))
    assert str(ScatArchitecture.parse("paper")) == "W[2,5]-PCA[20]"


def test_the_answer_is_that_of_its_parts_written_out(small):
    net, images, labels = small
    phi = net.features(images).double()
    phi = phi / phi.std(0, correction=0)
    logits = []
    for c in range(3):
        own = phi[labels == c]
        covariance = (own - own.mean(0)).T @ (own - own.mean(0))
        v = torch.linalg.eigh(covariance)[1][:, -3:]
        off = phi - own.mean(0)
        logits.append((off @ v).square().sum(1) - off.square().sum(1))
    torch.testing.assert_close(net(images).double(), torch.stack(logits, 1), rtol=1e-3, atol=1e-3)


def test_it_has_buffers_and_no_parameter(small):
    net, _, _ = small
    assert list(net.parameters()) == []
    assert set(net.state_dict()) == {"spread", "classifier.means", "classifier.directions", "classifier.fitted"}


# It has the symmetry it claims


def test_quarter_turns_and_shifts_hardly_change_the_features_of_digits(fitted, mnist_012):
    digits = mnist_012.test.images[:10]
    upright = fitted.features(digits)
    for turn in (turn for name, turn in SQUARE.items() if "reflected" not in name):
        assert ((fitted.features(turn(digits)) - upright).norm(dim=1) < 0.01 * upright.norm(dim=1)).all()
    shifted = fitted.features(torch.roll(digits, (1, -2), (2, 3)))
    assert ((shifted - upright).norm(dim=1) < 0.01 * upright.norm(dim=1)).all()


# It learns, and is measured as every network


def test_it_tells_upright_digits_apart_and_turned_ones(fitted, mnist_012):
    assert accuracy(fitted, mnist_012.test) >= 95
    few = mnist_012.test._replace(images=mnist_012.test.images[:10], labels=mnist_012.test.labels[:10])
    assert moved_accuracy(fitted, few, ROTATED).mean >= 90
    assert moved_accuracy(fitted, few, Isometry(max_shift=2)).mean >= 90


def test_it_predicts_what_its_logits_say(small):
    net, images, labels = small
    assert torch.equal(net.predict(images), net(images).argmax(1))
    assert torch.equal(net.predict(images), predict(net, images, batch_size=5))
    assert (net.predict(images) == labels).double().mean() > 0.9


def test_images_that_agree_in_a_feature_do_no_harm():
    images = torch.zeros(6, 1, 8, 8)
    images[1::2, :, 3:5, 3:5] = torch.tensor([1.0, 2.0, 3.0])[:, None, None, None]
    net = DeepScat("W[1,2]-PCA[1]", num_classes=2).fit(images, torch.arange(6) % 2)
    assert net(images).isfinite().all()
    assert net.predict(images).tolist() == [0, 1, 0, 1, 0, 1]
    assert DeepScat("W[1,2]-PCA[1]", 1).fit(images[:1], torch.zeros(1, dtype=torch.long))(images).isfinite().all()


def test_fitting_draws_no_random_numbers_and_repeats(small):
    net, images, labels = small
    state = torch.random.get_rng_state()
    again = DeepScat("W[2,2]-PCA[3]", 3, 2).fit(images, labels)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(again(images), net(images))


def test_progress_is_drawn_where_a_console_is_given(small):
    _, images, labels = small
    console = Console(file=io.StringIO(), force_terminal=True)
    DeepScat("W[1,1]-PCA[1]", 3, 2).fit(images, labels, console)
    assert "Scattering" in console.file.getvalue()


# It is a well-behaved module


def test_it_reads_other_sizes_than_it_was_fitted_to(fitted):
    assert fitted(torch.rand(1, 1, 34, 20)).shape == (1, 3)


def test_its_state_is_all_of_it(small):
    net, images, _ = small
    other = DeepScat("W[2,2]-PCA[3]", 3, 2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(images), net(images))
    assert torch.equal(copy.deepcopy(net)(images), net(images))
    assert net.extra_repr() == "'W[2,2]-PCA[3]', num_classes=3, in_maps=2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("W[5]-PCA[20]", "W takes 2 numbers (order, scales), got 1 in layer 1 ('W[5]') of 'W[5]-PCA[20]'"),
        ("W[3,5]-PCA[20]", "W has order of at most 2, got 3 in layer 1 ('W[3,5]') of 'W[3,5]-PCA[20]'"),
        ("W[2,0]-PCA[20]", "W has scales of at least 1, got 0 in layer 1 ('W[2,0]')"),
        ("PCA[20]", "wanted W in layer 1 ('PCA[20]') of 'PCA[20]': a DeepScat is one W layer, then one PCA layer"),
        ("W[2,5]", "wanted PCA after the last layer of 'W[2,5]'"),
        ("W[2,5]-PCA[20]-PCA[3]", "wanted nothing more in layer 3 ('PCA[3]')"),
        ("papr", "did you mean 'paper'?"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ScatArchitecture.parse(text)


def test_wrong_inputs_are_named(as_a_user, small):
    net, images, labels = small
    with pytest.raises(ValueError, match="at least 1, got 0 and 1"):
        DeepScat("paper", 0)
    with pytest.raises(ValueError, match="spaces of dimension 20 hold every sample of 9 features"):
        DeepScat("W[1,2]-PCA[20]", 3)
    with pytest.raises(RuntimeError, match="call fit"):
        DeepScat("paper", 3)(torch.rand(1, 1, 9, 9))
    with pytest.raises(ValueError, match=r"reads \(batch, 2, height, width\), got shape \(24, 1, 9, 11\)"):
        net(images[:, :1])
    with pytest.raises(ValueError, match=r"24 images have as many labels, got shape \(3,\)"):
        net.fit(images, labels[:3])
    with pytest.raises(ValueError, match="no sample has label 3"):
        DeepScat("paper", 4, 2).fit(images, labels)
