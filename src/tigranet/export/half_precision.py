"""Weights of ONNX models in half precision."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

if TYPE_CHECKING:
    import onnx

MIN_WEIGHTS = 64
"""Least number of weights for which half precision is worth an operator that converts them back."""
Constants = dict[str, Shaped[np.ndarray, "..."]]
"""The constants of a graph by name."""


def store_weights_in_half_precision(
    nodes: list["onnx.NodeProto"], constants: Constants
) -> tuple[list["onnx.NodeProto"], Constants]:
    """Store matrices and filters in half precision, and convert them to single precision in the graph.

    The file is about half as large. A runtime converts the weights when it loads the model, so the speed stays the
    same. Vectors, such as the means and scales of the statistics, whose values span many orders of magnitude, stay in
    single precision, and so does a matrix with a number that half precision cannot hold.

    Args:
        nodes: The operators of the graph.
        constants: The constants of the graph.

    Returns:
        The operators and constants of the changed graph.
    """
    from onnx import TensorProto, helper

    conversions = []
    changed: Constants = {}
    for name, array in constants.items():
        if array.dtype != np.float32 or array.ndim < 2 or array.size < MIN_WEIGHTS:
            changed[name] = array
            continue
        with np.errstate(over="ignore"):
            half = array.astype(np.float16)
        if not np.isfinite(half).all():
            changed[name] = array
            continue
        changed[f"{name}_half"] = half
        conversions.append(
            helper.make_node("Cast", [f"{name}_half"], [name], name=f"{name}_single", to=TensorProto.FLOAT)
        )
    return [*conversions, *nodes], changed
