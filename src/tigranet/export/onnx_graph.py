"""Translate a portable network to an ONNX graph, for any batch size, height and width.

``torch.fx`` records the operations of the network as they are written, without shapes. Each is then translated to one
or two ONNX operators (:mod:`tigranet.export.onnx_operators`). PyTorch's own ONNX exporter gives the same logits, but
takes 10 to 30 seconds per network where this takes less than one, needs two more packages, and copies tensors in
places where the graph of the portable network does not.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jaxtyping
import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, fx, nn

if TYPE_CHECKING:
    import onnx

OPSET = 18
"""Version of the ONNX operators: the first one in which every reduction reads its axes as an input."""
IR_VERSION = 9
"""Version of the file format, which onnxruntime 1.16 (2023) and newer read."""


class OnnxGraph(fx.Interpreter):
    """Run a recorded network on example images, and write an ONNX operator for each operation.

    The example gives the type of each value and the number of channels, which are the same for all images. Height,
    width and batch size are never read from it: they stay computations of the graph.

    Args:
        network: The network. It must be traceable by ``torch.fx``.
    """

    def __init__(self, network: nn.Module) -> None:
        with _without_shape_checks():
            tracer = _Tracer()
            super().__init__(fx.GraphModule(network, tracer.trace(network)))
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, Shaped[np.ndarray, ...]] = {}
        self.names: dict[fx.Node, Any] = {}
        self._stored: dict[fx.Node, Tensor] = {}
        self._numbers = itertools.count()
        self._constants: dict[Any, str] = {}

    def translate(
        self, example: Tensor, input_name: str, output_names: Sequence[str]
    ) -> tuple[list["onnx.NodeProto"], dict[str, Shaped[np.ndarray, "..."]]]:
        """Translate the network.

        Args:
            example: Example images.
            input_name: Name of the images in the graph.
            output_names: Names of the results in the graph.

        Returns:
            The operators in the order of computation, and the constants by name.

        Raises:
            NotImplementedError: If there is no translation of an operation.
        """
        self._input_name, self._output_names = input_name, list(output_names)
        with torch.inference_mode():
            self.run(example)
        return self.nodes, self.initializers

    def run_node(self, n: fx.Node) -> Any:
        """Compute the value of one node for the example, and write its operators.

        Args:
            n: The node of the recorded graph.

        Returns:
            The value.
        """
        from tigranet.export.onnx_operators import OPERATORS

        value = super().run_node(n)
        if n.op == "placeholder":
            self.names[n] = self._input_name
        elif n.op == "get_attr":
            self._stored[n] = value  # It becomes a constant of the graph where it is used.
        elif n.op == "output":
            for result, name in zip(_as_tuple(n.args[0]), self._output_names, strict=True):
                self.write("Identity", result, output=name)
        else:
            operation = n.target if isinstance(n.target, str) else getattr(n.target, "__name__", str(n.target))
            translation = OPERATORS.get(operation.strip("_"))
            if translation is None:
                raise NotImplementedError(f"expected an operation that has a translation to ONNX, got '{operation}'")
            self.names[n] = translation(self, n, *n.args, **n.kwargs)
        return value

    def write(self, operator: str, *inputs: Any, output: str | None = None, outputs: int = 1, **attributes: Any) -> Any:
        """Write one ONNX operator.

        Args:
            operator: Name of the ONNX operator.
            *inputs: Nodes of the recorded graph, names in the ONNX graph, or constants. None for an input that is
                left out.
            output: Name of the result. The default is a new name.
            outputs: Number of results.
            **attributes: Attributes of the operator.

        Returns:
            The name of the result, or a tuple of names.
        """
        from onnx import helper

        names = [output or f"{operator.lower()}_{next(self._numbers)}" for _ in range(outputs)]
        while inputs and inputs[-1] is None:  # some tools do not accept an empty name at the end
            inputs = inputs[:-1]
        sources = ["" if source is None else self.name_of(source) for source in inputs]
        self.nodes.append(helper.make_node(operator, sources, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else tuple(names)

    def name_of(self, source: Any) -> str:
        """Return the name in the ONNX graph of a node of the recorded graph, of a name, or of a constant.

        Args:
            source: The node, the name, or the constant.

        Returns:
            The name.
        """
        if isinstance(source, fx.Node):
            return self.constant(self._stored[source]) if source in self._stored else self.names[source]
        return source if isinstance(source, str) else self.constant(source)

    def value(self, source: Any) -> Any:
        """Return the value that a node has for the example.

        Args:
            source: The node, or any other value, which is returned as it is.

        Returns:
            The value.
        """
        return self.env[source] if isinstance(source, fx.Node) else source

    def constant(self, value: Any) -> str:
        """Add a constant to the graph. Equal small constants are stored once.

        Args:
            value: A tensor, an array, a number or a list of integers.

        Returns:
            Its name in the graph.
        """
        if isinstance(value, Tensor):
            array = value.detach().cpu().numpy()
        elif isinstance(value, float):
            array = np.array(value, np.float32)
        else:
            array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self.initializers[name] = array
            self._constants[key] = name
        return self._constants[key]

    def number(self, value: Any, like: Any) -> Any:
        """Return a number as a constant of the type of another value; anything else is returned as it is.

        Args:
            value: The number.
            like: The node whose type the constant gets.

        Returns:
            The name of the constant, or ``value``.
        """
        if isinstance(value, bool | int | float):
            example = self.value(like)
            kind = torch.empty(0, dtype=example.dtype).numpy().dtype if isinstance(example, Tensor) else np.int64
            return self.constant(np.array(value, kind))
        return value


class _Tracer(fx.Tracer):
    """Record every operation, also those inside of PyTorch's modules."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return False


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


@contextmanager
def _without_shape_checks() -> Iterator[None]:
    """Let symbols pass as tensors where shapes are checked, as in the tests."""
    disabled = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", disabled)
