"""The fused pooling selects the same nodes as the reference."""

import numpy as np
import pytest
import torch

from oracles import blank_with_patch, random_signal
from tigranet import DynamicPool, GridLaplacian, SpectralConv
from tigranet.ops import using
from tigranet.testing import SQUARE, equivariance_error


def both(pool, z, omega=None):
    results = []
    for mode in ("fused", "plain"):
        with using(mode):
            results.append(pool(z, omega))
    return results


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        nodes, batch, maps = int(rng.integers(1, 200)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        z = random_signal(rng, batch, maps, nodes)
        omega = torch.from_numpy(rng.random((batch, 1, nodes)) < 0.6) if rng.random() < 0.6 else None
        num_active, tolerance = int(rng.integers(1, nodes + 20)), float(rng.choice([0.0, 1e-4, 0.1]))
        actual, expected = both(DynamicPool(num_active, tolerance=tolerance), z, omega)
        assert torch.equal(actual, expected)
        actual, expected = both(DynamicPool(num_active, "strict"), z, omega)
        assert torch.equal(actual.sum(-1), expected.sum(-1))
        lowest = torch.where(actual, z, torch.inf).amin(-1)  # ties may be broken differently, the values are equal
        assert torch.equal(lowest, torch.where(expected, z, torch.inf).amin(-1))
        assert omega is None or not (actual & ~omega).any()


@pytest.mark.parametrize("value", [torch.nan, -torch.nan, torch.inf, -torch.inf, -0.0])
@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_values(value, tolerance, dtype):
    z = torch.randn(1, 3, 12, dtype=dtype)
    z[0, 0, 3] = z[0, 1, 4] = z[0, 1, 5] = value
    for omega in (None, torch.arange(12).remainder(3).bool().reshape(1, 1, 12)):
        for num_active in (1, 4, 12):
            actual, expected = both(DynamicPool(num_active, tolerance=tolerance), z, omega)
            assert torch.equal(actual, expected), (omega, num_active)
            actual, expected = both(DynamicPool(num_active, "strict"), z, omega)
            assert (
                torch.equal(actual.sum(-1), expected.sum(-1)) or value == -torch.inf
            )  # -inf ties with nodes outside omega


def test_strict_selects_the_first_of_equal_values():
    with using("fused"):
        assert DynamicPool(2, "strict")(torch.tensor([[[1.0, 0.0, 0.0, 0.0]]])).tolist() == [
            [[True, True, False, False]]
        ]


def test_large_maps_and_empty_batches():
    z = torch.randn(1, 1, 70_000)
    assert torch.equal(*both(DynamicPool(30_000), z))
    with using("fused"):
        assert DynamicPool(3)(torch.rand(0, 2, 9)).shape == (0, 2, 9)


def test_the_active_nodes_rotate_with_the_image():
    images, conv, grid = blank_with_patch(26), SpectralConv(1, 6, 4), GridLaplacian(26, 26)

    def active(images):
        return DynamicPool(200)(conv(images.flatten(2), grid)).unflatten(-1, (26, 26)).float()

    with using("fused"):
        for transform in SQUARE.values():
            assert equivariance_error(active, images, transform) == 0


def test_the_operator_passes_the_checks_of_pytorch():
    torch.library.opcheck(torch.ops.tigranet.pooling.default, (torch.rand(2, 3, 20), None, 5, False, 1e-4))
