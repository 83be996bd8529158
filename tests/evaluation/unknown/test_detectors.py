"""The published methods are what their papers say; all methods share one interface."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch import nn

from tigranet import TIGraNet
from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.energy import Energy
from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.max_logit import MaxLogit
from tigranet.evaluation.unknown.nearest_neighbours import NEIGHBOUR, NearestNeighbours
from tigranet.evaluation.unknown.relative_mahalanobis import RelativeMahalanobis
from tigranet.evaluation.unknown.representation import known_images, represent
from tigranet.evaluation.unknown.softmax_probability import SoftmaxProbability
from tigranet.evaluation.unknown.virtual_logit import VirtualLogit

DISTANCES = (Mahalanobis, VirtualLogit, DistanceAndProbability)
METHODS = (SoftmaxProbability, MaxLogit, Energy, RelativeMahalanobis, NearestNeighbours, *DISTANCES)


def test_the_representation_ends_in_the_logits_of_the_network():
    torch.manual_seed(0)
    net = TIGraNet("SC[3,2]-S[2]-FC[8]-FC[7]", 3).eval()
    images = torch.rand(4, 1, 12, 12)
    with torch.inference_mode():
        phi = net.features(images)
        representation = represent(net)(torch.cat([phi, torch.ones(4, 1)], dim=1))
        torch.testing.assert_close(representation.logits.float(), net(images))
    last = net.classifier[-1]
    assert isinstance(last, nn.Linear)
    assert representation.hidden.shape == (4, 7)
    assert torch.equal(representation.contrast, torch.ones(4).double())
    known = known_images(net, torch.cat([phi, torch.ones(4, 1)], dim=1), torch.arange(4) % 3)
    torch.testing.assert_close(known.images.hidden @ known.weight.T + known.bias, known.images.logits)


@pytest.mark.parametrize("method", METHODS)
def test_each_image_has_a_score_that_does_not_depend_on_the_others(method, known, validation):
    detector = method.fit(known, validation)
    scores = detector.scores(validation)
    assert (scores.shape, scores.dtype, bool(scores.isfinite().all())) == ((30,), torch.float64, True)
    some = torch.tensor([7, 3])
    torch.testing.assert_close(detector.scores(validation.take(some)), scores[some])


@pytest.mark.parametrize("method", DISTANCES)
def test_distances_find_images_whose_features_lie_elsewhere(method, known, validation, others):
    detector = method.fit(known, validation)
    assert detector.scores(others).min() > detector.scores(validation).max()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("images", [3, 4])
def test_one_image_per_class_suffices(method, images, net, known, validation):
    few = known._replace(images=known.images.take(torch.arange(images)), labels=known.labels[:images])
    assert method.fit(few, validation).scores(validation).isfinite().all()


def test_logits_alone_give_the_scores_of_their_papers(known, validation):
    z = validation.logits
    p = z.softmax(1).amax(1)
    torch.testing.assert_close(SoftmaxProbability.fit(known, validation).scores(validation).neg().exp(), p)
    torch.testing.assert_close(MaxLogit.fit(known, validation).scores(validation), -z.max(1).values)
    torch.testing.assert_close(Energy.fit(known, validation).scores(validation), -z.exp().sum(1).log())


def test_nearest_neighbours_are_those_of_scikit_learn(known, validation):
    rows, new = (
        x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known.images.hidden.numpy(), validation.hidden.numpy())
    )
    expected = NearestNeighbors(n_neighbors=NEIGHBOUR).fit(rows).kneighbors(new)[0][:, -1]
    np.testing.assert_allclose(NearestNeighbours.fit(known, validation).scores(validation), expected)


def test_mahalanobis_distances_are_those_of_the_dense_inverse(known, validation):
    x, y, new = known.images.features, known.labels, validation.features
    means = torch.stack([x[y == label].mean(0) for label in range(3)])
    detector = Mahalanobis.fit(known, validation)
    inverse = torch.linalg.inv(_dense(detector.within))
    distances = torch.stack([((new - mean) @ inverse * (new - mean)).sum(1) for mean in means]).amin(0)
    torch.testing.assert_close(detector.scores(validation), distances)
    relative = RelativeMahalanobis.fit(known, validation)
    inverse = torch.linalg.inv(_dense(relative.total))
    deviations = new - x.mean(0)
    torch.testing.assert_close(relative.scores(validation), distances - (deviations @ inverse * deviations).sum(1))


def test_the_virtual_logit_of_training_images_has_the_mean_of_their_largest_logits(known, validation):
    detector = VirtualLogit.fit(known, validation)
    virtual = detector.scores(known.images) + known.images.logits.logsumexp(1)
    torch.testing.assert_close(virtual.mean(), known.images.logits.amax(1).mean())
    torch.testing.assert_close(known.weight @ detector.origin, -known.bias)


def test_confident_logits_do_not_make_up_for_a_large_distance(known, validation, others):
    detector = DistanceAndProbability.fit(known, validation)
    confident = others._replace(logits=1e6 * torch.eye(3)[torch.arange(20) % 3].double())
    assert detector.scores(confident).min() > detector.scores(validation).max()


def test_known_images_have_a_score_of_zero_on_average_and_stored_numbers_give_the_same_scores(known, validation):
    detector = DistanceAndProbability.fit(known, validation)
    assert abs(float(detector.scores(validation).mean())) < 0.1  # except for clipped probabilities
    rounded = detector.rounded()
    torch.testing.assert_close(rounded.scores(validation), detector.scores(validation), rtol=1e-3, atol=1e-3)
    again = DistanceAndProbability.from_tensors(rounded.to_tensors())
    assert torch.equal(again.scores(validation), rounded.scores(validation))


def _dense(covariance):
    rest = torch.eye(covariance.directions.shape[1]) - covariance.directions.T @ covariance.directions
    along = covariance.directions.T @ torch.diag(covariance.variances) @ covariance.directions
    return along + covariance.other_variance * rest
