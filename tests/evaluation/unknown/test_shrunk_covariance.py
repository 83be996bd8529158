import pytest
import torch
from sklearn.covariance import ledoit_wolf

from tigranet.evaluation.unknown.shrunk_covariance import ShrunkCovariance, class_means, ledoit_wolf_shrinkage


def samples(count, features, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(features, features, generator=generator).double()
    return torch.randn(count, features, generator=generator).double() @ mixing


@pytest.mark.parametrize(("count", "features"), [(50, 6), (8, 20), (2, 5)])
def test_the_estimate_is_that_of_scikit_learn(count, features):
    x = samples(count, features)
    expected, shrinkage = ledoit_wolf(x.numpy(), assume_centered=True)
    assert ledoit_wolf_shrinkage(x) == pytest.approx(shrinkage)
    distances = ShrunkCovariance.estimate(x).squared_distances(x, torch.zeros(1, features))[:, 0]
    inverse = torch.linalg.inv(torch.from_numpy(expected))
    torch.testing.assert_close(distances, (x @ inverse * x).sum(1), rtol=1e-6, atol=1e-6)


def test_fewer_directions_share_the_remaining_variance():
    x = samples(40, 10)
    covariance = ShrunkCovariance.estimate(x, max_directions=4)
    full = ShrunkCovariance.estimate(x)
    assert covariance.directions.shape == (4, 10)
    torch.testing.assert_close(covariance.variances, full.variances[:4])
    torch.testing.assert_close(covariance.other_variance, full.variances[4:].mean())


def test_whitening_makes_the_covariance_the_identity_and_has_an_adjoint():
    x, y = samples(40, 6), samples(3, 6, seed=1)
    covariance = ShrunkCovariance.estimate(x, max_directions=3)
    norms = covariance.whiten(y).square().sum(1)
    torch.testing.assert_close(norms, covariance.squared_distances(y, torch.zeros(1, 6))[:, 0])
    vectors = torch.randn(4, 9).double()
    torch.testing.assert_close(covariance.whiten(y) @ vectors.T, y @ covariance.whiten_transposed(vectors).T)


def test_images_that_do_not_vary_have_a_positive_variance():
    covariance = ShrunkCovariance.estimate(torch.zeros(4, 3))
    assert covariance.squared_distances(torch.ones(2, 3), torch.zeros(1, 3)).isfinite().all()
    means, deviations = class_means(torch.arange(6.0).reshape(3, 2), torch.tensor([4, 1, 4]))
    assert means.tolist() == [[2, 3], [2, 3]]
    assert deviations.tolist() == [[-2, -2], [0, 0], [2, 2]]
