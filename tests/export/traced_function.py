"""A function of one tensor as an exported graph."""

from onnx import TensorProto, helper, numpy_helper
from torch import nn

from export.conftest import session_of
from tigranet.export.onnx_graph import IR_VERSION, OPSET, OnnxGraph


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def in_onnxruntime(function, x):
    """Translate a function and open it in onnxruntime. ``x`` is an example of its argument."""
    nodes, constants = OnnxGraph(Function(function)).translate(x, "x", ["y"])
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.numpy().dtype), [None] * x.ndim)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return session_of(helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]))
