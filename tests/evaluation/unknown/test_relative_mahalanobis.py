import torch

from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.relative_mahalanobis import RelativeMahalanobis


def test_the_distance_from_the_mean_of_all_images_is_subtracted(known, validation):
    detector = RelativeMahalanobis.fit(known, validation)
    inverse = torch.linalg.inv(_dense(detector.total))
    deviations = validation.features - known.images.features.mean(0)
    expected = Mahalanobis.fit(known, validation).scores(validation) - (deviations @ inverse * deviations).sum(1)
    torch.testing.assert_close(detector.scores(validation), expected)


def _dense(covariance):
    rest = torch.eye(covariance.directions.shape[1]) - covariance.directions.T @ covariance.directions
    along = covariance.directions.T @ torch.diag(covariance.variances) @ covariance.directions
    return along + covariance.other_variance * rest
