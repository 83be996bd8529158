import jaxtyping
import numpy as np
import pytest
import torch

from export.traced_function import Function
from tigranet.export.onnx_graph import OnnxGraph


def test_an_unknown_operation_is_named():
    with pytest.raises(NotImplementedError, match="erfinv"):
        OnnxGraph(Function(lambda x: x.erfinv())).translate(torch.zeros(2), "x", ["y"])


def test_equal_constants_are_stored_once():
    weight = torch.rand(3)
    graph = OnnxGraph(Function(lambda x: x * weight + weight.clone() + 2.0 - 2.0))
    _, constants = graph.translate(torch.zeros(3), "x", ["y"])
    assert len(constants) == 2
    assert np.array_equal(next(iter(constants.values())), weight.numpy())


def test_shapes_are_checked_again_after_a_translation():
    before = jaxtyping.config.jaxtyping_disable
    OnnxGraph(Function(lambda x: x + 1))
    assert jaxtyping.config.jaxtyping_disable == before
