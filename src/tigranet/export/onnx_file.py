"""Networks as ONNX models."""

from typing import TYPE_CHECKING

import numpy as np
import torch

import tigranet
from tigranet.choices import ExportPrecision
from tigranet.export.half_precision import store_weights_in_half_precision
from tigranet.export.model_interface import ModelInterface
from tigranet.export.onnx_graph import IR_VERSION, OPSET, OnnxGraph

if TYPE_CHECKING:
    import onnx


MAX_BYTES = 2_000_000_000
"""Largest size of the weights. A protocol buffer has at most 2 GiB."""


def build_onnx(interface: ModelInterface, precision: ExportPrecision = "float32") -> "onnx.ModelProto":
    """Build the ONNX model of a network, for any batch size, height and width.

    Args:
        interface: The exported version of the network.
        precision: ``float16`` stores the weights in half precision. All computations are in single precision.

    Returns:
        The model, with the description of the network in its metadata.

    Raises:
        ImportError: If the package onnx is not installed.
        ValueError: If the weights do not fit into one file.
    """
    require_onnx()
    from onnx import checker, helper, numpy_helper

    names = interface.input_name, [interface.output_name]
    nodes, constants = OnnxGraph(interface.module).translate(interface.example(), *names)
    if precision == "float16":
        nodes, constants = store_weights_in_half_precision(nodes, constants)
    if (num_bytes := sum(array.nbytes for array in constants.values())) > MAX_BYTES:
        raise ValueError(
            f"expected weights of at most {MAX_BYTES:,} bytes, the limit of an ONNX file, got {num_bytes:,}: "
            "use float16, or a smaller architecture"
        )
    kind = helper.np_dtype_to_tensor_dtype(torch.empty(0, dtype=interface.dtype).numpy().dtype)
    output_kind = helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))
    graph = helper.make_graph(
        nodes,
        "tigranet",
        [helper.make_tensor_value_info(interface.input_name, kind, list(interface.shape))],
        [helper.make_tensor_value_info(interface.output_name, output_kind, ["batch", interface.num_classes])],
        [numpy_helper.from_array(array.copy(order="C"), name) for name, array in constants.items()],
    )
    model = helper.make_model(
        graph,
        producer_name="tigranet",
        producer_version=tigranet.__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(model, interface.metadata | {"precision": precision})
    checker.check_model(model, full_check=True)
    return model


def require_onnx() -> None:
    """Check that the package onnx is installed.

    Raises:
        ImportError: If it is not.
    """
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError("an ONNX file needs onnx, which is not installed: pip install 'tigranet[export]'") from None
