import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from tigranet.baselines.affine_pca import AffinePCA


def samples_of_known_subspaces(classes=3, features=12, dimension=4, samples=40):
    """Return samples of known affine subspaces, their labels, and the mean and an orthonormal basis of each class."""
    means = 3 * torch.randn(classes, features, dtype=torch.float64)
    bases = torch.linalg.qr(torch.randn(classes, features, dimension, dtype=torch.float64))[0]
    labels = torch.arange(samples * classes) % classes
    coordinates = torch.randn(len(labels), dimension, dtype=torch.float64)
    return means[labels] + torch.einsum("n f d, n d -> n f", bases[labels], coordinates), labels, means, bases


# It is the published classifier


def test_distances_to_known_subspaces_are_those_of_their_projectors():
    samples, labels, means, bases = samples_of_known_subspaces()
    classifier = AffinePCA(12, 3, 4).double().fit(samples, labels)
    others = torch.randn(30, 12, dtype=torch.float64)
    offset = others[:, None] - means
    projector = torch.eye(12) - bases @ bases.mT
    expected = torch.einsum("n c f, c f g, n c g -> n c", offset, projector, offset)
    torch.testing.assert_close(-classifier(others), expected)


def test_samples_of_a_subspace_belong_to_it_at_any_distance():
    samples, labels, means, _ = samples_of_known_subspaces()
    classifier = AffinePCA(12, 3, 4).double().fit(samples, labels)
    far = means[labels] + 50 * (samples - means[labels])
    assert torch.equal(classifier.predict(far), labels)
    nearest_mean = torch.cdist(far, means).argmin(1)
    assert (nearest_mean != labels).any()  # the means alone would give other classes


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_distances_are_the_residuals_of_scikit_learn(dimension):
    samples, labels = torch.randn(90, 10, dtype=torch.float64) @ torch.randn(10, 10).double(), torch.arange(90) % 2
    classifier = AffinePCA(10, 2, dimension).double().fit(samples, labels)
    others = torch.randn(20, 10, dtype=torch.float64)
    for c in range(2):
        pca = PCA(dimension, svd_solver="full").fit(samples[labels == c].numpy())
        reconstruction = torch.from_numpy(pca.inverse_transform(pca.transform(others.numpy())))
        torch.testing.assert_close(-classifier(others)[:, c], (others - reconstruction).square().sum(1))


def test_the_first_of_equally_near_classes_is_predicted():
    samples = torch.tensor([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])  # two parallel lines
    classifier = AffinePCA(2, 2, 1).fit(samples, torch.tensor([0, 0, 1, 1]))
    torch.testing.assert_close(classifier(torch.tensor([[5.0, 0.0]])), torch.tensor([[-1.0, -1.0]]))
    assert classifier.predict(torch.tensor([[5.0, 0.0], [5.0, -0.1], [5.0, 0.1]])).tolist() == [0, 1, 0]


# It has the symmetry it claims


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_an_isometry_of_the_features_does_not_change_the_logits(seed):
    torch.manual_seed(seed)
    samples, labels = torch.randn(30, 6, dtype=torch.float64), torch.arange(30) % 3
    rotation, shift = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0], torch.randn(6, dtype=torch.float64)
    others = torch.randn(9, 6, dtype=torch.float64)
    original = AffinePCA(6, 3, 2).double().fit(samples, labels)
    transformed = AffinePCA(6, 3, 2).double().fit(samples @ rotation + shift, labels)
    torch.testing.assert_close(transformed(others @ rotation + shift), original(others))


# It learns from few samples


def test_a_class_with_few_samples_uses_the_directions_that_they_span():
    samples = torch.tensor([[0.0, 0, 0, 1], [2, 0, 0, 1], [0, 3, 0, 5], [0, 3, 0, 5]])
    classifier = AffinePCA(4, 2, 3).fit(samples, torch.tensor([0, 0, 1, 1]))
    line_distance, point_distance = 2.0**2 + 3**2, 7.0**2 + 1 + 3**2 + 4**2
    torch.testing.assert_close(
        -classifier(torch.tensor([[7.0, 2, 3, 1]])), torch.tensor([[line_distance, point_distance]])
    )


def test_one_sample_per_class_gives_the_nearest_neighbour():
    samples, others = torch.randn(5, 8), torch.randn(40, 8)
    classifier = AffinePCA(8, 5, 3).fit(samples, torch.arange(5))
    assert torch.equal(classifier.predict(others), torch.cdist(others, samples).argmin(1))


def test_a_single_class_is_always_predicted():
    classifier = AffinePCA(4, 1, 2).fit(torch.randn(9, 4), torch.zeros(9, dtype=torch.long))
    assert classifier.predict(torch.randn(3, 4)).tolist() == [0, 0, 0]


def test_fitting_again_overwrites_the_first_fit():
    samples, labels = torch.randn(40, 6), torch.arange(40) % 2
    refitted = AffinePCA(6, 2, 5).fit(samples, labels).fit(samples[:4], labels[:4])
    torch.testing.assert_close(refitted(samples), AffinePCA(6, 2, 5).fit(samples[:4], labels[:4])(samples))


# It is a well-behaved module


def test_the_fit_is_stored_in_the_state_dict():
    samples, labels = torch.randn(40, 6), torch.arange(40) % 2
    classifier, other = AffinePCA(6, 2, 3).fit(samples, labels), AffinePCA(6, 2, 3)
    other.load_state_dict(classifier.state_dict())
    assert torch.equal(other(samples), classifier(samples))
    assert torch.equal(copy.deepcopy(classifier)(samples), classifier(samples))
    assert repr(classifier) == "AffinePCA(num_features=6, num_classes=2, dimension=3)"
    assert list(classifier.parameters()) == []


def test_an_unfitted_classifier_asks_for_fit():
    with pytest.raises(RuntimeError, match=r"call fit\(samples, labels\)"):
        AffinePCA(6, 2, 3)(torch.randn(1, 6))


def test_invalid_sizes_are_rejected():
    with pytest.raises(ValueError, match=r"at least 1.*6, 0 and 3"):
        AffinePCA(6, 0, 3)
    with pytest.raises(ValueError, match=r"dimension 6.*6 features.*at most 5"):
        AffinePCA(6, 2, 6)


def test_invalid_samples_are_rejected(without_shape_checks):
    classifier, labels = AffinePCA(3, 2, 1), torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"\(n, 3\).*\(2, 4\) and \(2,\)"):
        classifier.fit(torch.randn(2, 4), labels)
    with pytest.raises(ValueError, match=r"\(3, 3\) and \(2,\)"):
        classifier.fit(torch.randn(3, 3), labels)
    with pytest.raises(ValueError, match=r"0 to 1 for 2 classes.*0 to 2"):
        classifier.fit(torch.randn(3, 3), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"label 1:.*2 classes.*num_classes"):
        classifier.fit(torch.randn(3, 3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="label 0, 1:"):
        classifier.fit(torch.randn(0, 3), torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"finite.*1 of 2 samples"):
        classifier.fit(torch.tensor([[0.0, 1, float("nan")], [1, 2, 3]]), labels)
