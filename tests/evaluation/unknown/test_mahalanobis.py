import torch

from tigranet.evaluation.unknown.mahalanobis import Mahalanobis


def test_distances_are_those_of_the_dense_inverse(known, validation):
    x, y, new = known.images.features, known.labels, validation.features
    means = torch.stack([x[y == label].mean(0) for label in range(3)])
    detector = Mahalanobis.fit(known, validation)
    inverse = torch.linalg.inv(_dense(detector.within))
    expected = torch.stack([((new - mean) @ inverse * (new - mean)).sum(1) for mean in means]).amin(0)
    torch.testing.assert_close(detector.scores(validation), expected)


def _dense(covariance):
    rest = torch.eye(covariance.directions.shape[1]) - covariance.directions.T @ covariance.directions
    along = covariance.directions.T @ torch.diag(covariance.variances) @ covariance.directions
    return along + covariance.other_variance * rest
