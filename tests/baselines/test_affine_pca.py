import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from tigranet.baselines.affine_pca import AffinePCA


def spaces(classes=3, features=12, dimension=4, samples=40):
    """Samples that lie in known affine spaces: label, mean and an orthonormal basis of each."""
    means = 3 * torch.randn(classes, features, dtype=torch.float64)
    bases = torch.linalg.qr(torch.randn(classes, features, dimension, dtype=torch.float64))[0]
    labels = torch.arange(samples * classes) % classes
    inside = torch.randn(len(labels), dimension, dtype=torch.float64)
    return means[labels] + torch.einsum("n f d, n d -> n f", bases[labels], inside), labels, means, bases


# It is what the books say


def test_the_distances_to_known_spaces_are_those_of_their_projectors():
    samples, labels, means, bases = spaces()
    classifier = AffinePCA(12, 3, 4).double().fit(samples, labels)
    others = torch.randn(30, 12, dtype=torch.float64)
    off = others[:, None] - means
    outside = torch.eye(12) - bases @ bases.mT
    wanted = torch.einsum("n c f, c f g, n c g -> n c", off, outside, off)
    torch.testing.assert_close(-classifier(others), wanted)


def test_samples_of_the_spaces_are_theirs_however_far_away():
    samples, labels, means, _ = spaces()
    classifier = AffinePCA(12, 3, 4).double().fit(samples, labels)
    far = means[labels] + 50 * (samples - means[labels])
    assert torch.equal(classifier.predict(far), labels)
    nearest_mean = torch.cdist(far, means).argmin(1)
    assert (nearest_mean != labels).any()  # the directions decide, not the means


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_the_distances_are_the_residuals_of_scikit_learn(dimension):
    samples, labels = torch.randn(90, 10, dtype=torch.float64) @ torch.randn(10, 10).double(), torch.arange(90) % 2
    classifier = AffinePCA(10, 2, dimension).double().fit(samples, labels)
    others = torch.randn(20, 10, dtype=torch.float64)
    for c in range(2):
        pca = PCA(dimension, svd_solver="full").fit(samples[labels == c].numpy())
        rebuilt = torch.from_numpy(pca.inverse_transform(pca.transform(others.numpy())))
        torch.testing.assert_close(-classifier(others)[:, c], (others - rebuilt).square().sum(1))


def test_the_first_of_equally_near_classes_is_taken():
    samples = torch.tensor([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])  # two parallel lines
    classifier = AffinePCA(2, 2, 1).fit(samples, torch.tensor([0, 0, 1, 1]))
    torch.testing.assert_close(classifier(torch.tensor([[5.0, 0.0]])), torch.tensor([[-1.0, -1.0]]))
    assert classifier.predict(torch.tensor([[5.0, 0.0], [5.0, -0.1], [5.0, 0.1]])).tolist() == [0, 1, 0]


# It has the symmetry it claims


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_moving_the_space_of_features_moves_nothing_else(seed):
    torch.manual_seed(seed)
    samples, labels = torch.randn(30, 6, dtype=torch.float64), torch.arange(30) % 3
    turn, step = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0], torch.randn(6, dtype=torch.float64)
    others = torch.randn(9, 6, dtype=torch.float64)
    still = AffinePCA(6, 3, 2).double().fit(samples, labels)
    moved = AffinePCA(6, 3, 2).double().fit(samples @ turn + step, labels)
    torch.testing.assert_close(moved(others @ turn + step), still(others))


# It learns from little


def test_fewer_samples_than_dimensions_span_what_they_span():
    samples = torch.tensor([[0.0, 0, 0, 1], [2, 0, 0, 1], [0, 3, 0, 5], [0, 3, 0, 5]])
    classifier = AffinePCA(4, 2, 3).fit(samples, torch.tensor([0, 0, 1, 1]))
    to_a_line, to_a_point = 2.0**2 + 3**2, 7.0**2 + 1 + 3**2 + 4**2
    torch.testing.assert_close(-classifier(torch.tensor([[7.0, 2, 3, 1]])), torch.tensor([[to_a_line, to_a_point]]))


def test_one_sample_a_class_is_the_nearest_neighbour():
    samples, others = torch.randn(5, 8), torch.randn(40, 8)
    classifier = AffinePCA(8, 5, 3).fit(samples, torch.arange(5))
    assert torch.equal(classifier.predict(others), torch.cdist(others, samples).argmin(1))


def test_one_class_is_always_right():
    classifier = AffinePCA(4, 1, 2).fit(torch.randn(9, 4), torch.zeros(9, dtype=torch.long))
    assert classifier.predict(torch.randn(3, 4)).tolist() == [0, 0, 0]


def test_fitting_again_forgets():
    samples, labels = torch.randn(40, 6), torch.arange(40) % 2
    again = AffinePCA(6, 2, 5).fit(samples, labels).fit(samples[:4], labels[:4])
    torch.testing.assert_close(again(samples), AffinePCA(6, 2, 5).fit(samples[:4], labels[:4])(samples))


# It is a well-behaved module


def test_what_it_found_is_in_its_state():
    samples, labels = torch.randn(40, 6), torch.arange(40) % 2
    classifier, other = AffinePCA(6, 2, 3).fit(samples, labels), AffinePCA(6, 2, 3)
    other.load_state_dict(classifier.state_dict())
    assert torch.equal(other(samples), classifier(samples))
    assert torch.equal(copy.deepcopy(classifier)(samples), classifier(samples))
    assert repr(classifier) == "AffinePCA(num_features=6, num_classes=2, dimension=3)"
    assert list(classifier.parameters()) == []


def test_before_it_is_fitted_it_says_so():
    with pytest.raises(RuntimeError, match=r"no classes yet: call fit\(samples, labels\) before"):
        AffinePCA(6, 2, 3)(torch.randn(1, 6))


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="at least 1, got 6, 0 and 3"):
        AffinePCA(6, 0, 3)
    with pytest.raises(ValueError, match="dimension 6 hold every sample of 6 features: take a dimension of at most 5"):
        AffinePCA(6, 2, 6)


def test_wrong_samples_are_named(as_a_user):
    classifier, two = AffinePCA(3, 2, 1), torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"samples \(n, 3\) and n labels, got shapes \(2, 4\) and \(2,\)"):
        classifier.fit(torch.randn(2, 4), two)
    with pytest.raises(ValueError, match=r"got shapes \(3, 3\) and \(2,\)"):
        classifier.fit(torch.randn(3, 3), two)
    with pytest.raises(ValueError, match="labels of 2 classes are 0 to 1, got some from 0 to 2"):
        classifier.fit(torch.randn(3, 3), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="no sample has label 1: each of the 2 classes needs one"):
        classifier.fit(torch.randn(3, 3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="no sample has label 0, 1"):
        classifier.fit(torch.randn(0, 3), torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match="some samples are not finite"):
        classifier.fit(torch.tensor([[0.0, 1, float("nan")], [1, 2, 3]]), two)
