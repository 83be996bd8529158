"""Which hardware computes with numbers of 16 bits."""

import sys

import pytest
import torch
from llvmlite import binding

from tigranet.half_precision import CPU_FEATURES, computes_with

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_one_of_two_features_of_a_cpu_is_enough(dtype, monkeypatch):
    for feature in CPU_FEATURES[dtype]:
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda feature=feature: {"avx512f": True, feature: True})
        assert computes_with(CPU, dtype)
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda feature=feature: {"avx512f": True, feature: False})
        assert not computes_with(CPU, dtype)


def test_without_the_package_that_knows_the_cpu_the_answer_is_no(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert not computes_with(CPU, torch.bfloat16)


@pytest.mark.parametrize("is_supported", [True, False])
def test_gpus_compute_with_float16_and_new_ones_with_bfloat16(is_supported, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: is_supported)
    assert computes_with(GPU, torch.float16)
    assert computes_with(GPU, torch.bfloat16) is is_supported
