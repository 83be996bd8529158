import numpy as np
from onnx import helper

from tigranet.export.half_precision import MIN_WEIGHTS, store_weights_in_half_precision


def test_only_large_matrices_that_fit_are_converted():
    constants = {
        "matrix": np.full((8, MIN_WEIGHTS), 0.1, np.float32),
        "vector": np.full(1000, 0.1, np.float32),
        "small": np.ones((2, 2), np.float32),
        "too large": np.full((8, MIN_WEIGHTS), 1e6, np.float32),
        "integers": np.ones((8, MIN_WEIGHTS), np.int64),
    }
    nodes = [helper.make_node("Relu", ["matrix"], ["y"])]
    changed_nodes, changed = store_weights_in_half_precision(nodes, constants)
    assert set(changed) == {"matrix_half", "vector", "small", "too large", "integers"}
    assert changed["matrix_half"].dtype == np.float16
    assert [node.op_type for node in changed_nodes] == ["Cast", "Relu"]
    assert list(changed_nodes[0].output) == ["matrix"]
