"""The kernel of dynamic pooling: emulated on the CPU, it finds the nodes that the reference finds."""

import numpy as np
import pytest
import torch

from emulated import H200, emulate, needs_a_compiler
from nvcc import compile_to_registers, needs_nvcc
from tigranet import DynamicPool
from tigranet.ops import using
from tigranet.ops.cuda import pooling as kernels
from tigranet.ops.cuda.limits import DeviceLimits


@needs_nvcc
def test_the_source_compiles():
    macros = {"REAL": "float", "BITS": "unsigned", "MASKED": 1, "STRICT": 1}
    compile_to_registers("pooling", macros | dict(kernels.launch_plan(900, 4, H200).macros))


@needs_a_compiler
@pytest.mark.parametrize("ties", ["keep", "strict"])
@pytest.mark.parametrize("limits", [H200, DeviceLimits(48 * 1024, 64, 2500)])  # keys in registers, or read again
def test_it_agrees_with_the_reference_emulated(ties, limits, monkeypatch):
    emulate(monkeypatch, limits)
    assert dict(kernels.launch_plan(1600, 4, limits).macros)["KEYS_IN_REGISTERS"] == (limits is H200)
    rng = np.random.default_rng(0)
    omega = torch.from_numpy(rng.random((2, 1, 1600)) < 0.6)
    z = torch.from_numpy(rng.standard_normal((2, 3, 1600)).round(2)).float()
    layer = DynamicPool(200, ties)
    for mask in (omega, None):
        with using("plain"):
            expected = layer(z, mask)
        actual = kernels.forward(z, mask, 200, ties == "strict", layer.tolerance)
        if ties == "strict":
            assert torch.equal(actual.sum(-1), expected.sum(-1))
            assert (z.where(actual, torch.inf).amin(-1) >= z.where(expected, torch.inf).amin(-1)).all()
        else:
            assert torch.equal(actual, expected)
