"""Benchmark of dynamic pooling of 20 maps: bisection (fused) and ``torch.topk`` (plain)."""

from functools import partial

import torch

from benchmarks.timing import DEVICE, Row, compare
from tigranet import DynamicPool
from tigranet.ops import using


def measure() -> list[Row]:
    """Time the pooling for several image sizes."""
    rows = []
    for size, batch, num_active in ((26, 100, 300), (50, 25, 1000), (128, 4, 6000)):
        z = torch.randn(batch, 20, size * size).to(DEVICE)
        omega = torch.rand(batch, 1, size * size).to(DEVICE) < 0.9
        run = partial(_pool, pool=DynamicPool(num_active), z=z, omega=omega)
        rows += compare("pooling", size, {mode: partial(run, mode) for mode in ("fused", "plain")})
    return rows


def _pool(mode, pool, z, omega):
    with using(mode):
        return pool(z, omega)
