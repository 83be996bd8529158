"""All methods have the interface of a detector."""

import pytest
import torch

from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.energy import Energy
from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.max_logit import MaxLogit
from tigranet.evaluation.unknown.nearest_neighbours import NearestNeighbours
from tigranet.evaluation.unknown.relative_mahalanobis import RelativeMahalanobis
from tigranet.evaluation.unknown.softmax_probability import SoftmaxProbability
from tigranet.evaluation.unknown.virtual_logit import VirtualLogit

DISTANCES = (Mahalanobis, VirtualLogit, DistanceAndProbability)
METHODS = (SoftmaxProbability, MaxLogit, Energy, RelativeMahalanobis, NearestNeighbours, *DISTANCES)


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
