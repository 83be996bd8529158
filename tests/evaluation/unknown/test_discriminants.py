import numpy as np
import torch
from scipy.linalg import eigh
from sklearn.covariance import ledoit_wolf

from tigranet.evaluation.unknown.discriminants import fisher_discriminants
from tigranet.evaluation.unknown.shrunk_covariance import ShrunkCovariance, class_means


def test_they_solve_the_generalised_eigenvalue_problem():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(90) % 3
    noise = torch.randn(90, 5, generator=generator) @ torch.randn(5, 5, generator=generator)
    x = noise.double() + 3 * torch.randn(3, 5, generator=generator).double()[labels]
    means, deviations = class_means(x, labels)
    within = ShrunkCovariance.estimate(deviations)
    directions = fisher_discriminants(means, labels.bincount(), within)
    assert directions.shape == (2, 5)
    between = np.cov(means.numpy().T, bias=True)  # classes of the same size
    _, vectors = eigh(between, ledoit_wolf(deviations.numpy(), assume_centered=True)[0])
    expected = torch.cdist(*(rows @ torch.from_numpy(vectors[:, -2:].copy()) for rows in (x, means)))
    torch.testing.assert_close(torch.cdist(x @ directions.T, means @ directions.T), expected)
