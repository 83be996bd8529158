"""Requests and responses of the Open Inference Protocol, version 2, for networks that classify images.

The input ``image`` holds images of one size, (n, height, width) or (n, height, width, channels), or n image files as
BYTES. The outputs are ``label``, ``probability``, ``probabilities`` and ``unknown``. Tensors are JSON, or
binary data after the JSON object (the binary tensor data extension).
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tigranet.json_file import parse_json_object
from tigranet.quoted_text import shorten
from tigranet.serving.answer import Answer
from tigranet.serving.image_input import ImageInput
from tigranet.serving.tensor_data import (
    BYTES,
    check_datatype,
    check_shape,
    files_from_binary,
    files_from_json,
    tensor_from_binary,
    tensor_from_json,
    tensor_to_binary,
    tensor_to_json,
)

INPUT = "image"
"""Name of the only input."""
OUTPUTS = {"label": BYTES, "probability": "FP32", "probabilities": "FP32", "unknown": "BOOL"}
"""Names and types of the outputs."""
EXTENSIONS = ("binary_tensor_data",)
"""Extensions of the protocol that the server supports."""
HEADER_LENGTH = "Inference-Header-Content-Length"
"""HTTP header with the number of bytes of the JSON object, if binary data follows it."""


@dataclass(frozen=True)
class InferenceRequest:
    """The images of a request, and which outputs are wanted."""

    images: list[ImageInput]
    """One entry per image."""
    outputs: dict[str, bool]
    """The names of the outputs, and whether each is returned as binary data."""
    id: str | None = None
    """The identifier that the response repeats."""


def parse_request(body: bytes, header_length: str | None, max_images: int) -> InferenceRequest:
    """Parse the body of an inference request.

    Args:
        body: The body: a JSON object, and binary data after it.
        header_length: Value of the HTTP header ``Inference-Header-Content-Length``: the number of bytes of the JSON
            object. None if the whole body is JSON.
        max_images: Largest number of images.

    Returns:
        The request.

    Raises:
        ValueError: If the request does not follow the protocol, or has too many images.
    """
    json_bytes = _json_length(header_length, len(body))
    request = parse_json_object(body[:json_bytes], "body", "an inference request")
    parameters = _parameters(request, "the request")
    identifier = request.get("id")
    if "id" in request and not isinstance(identifier, str):
        raise ValueError(f"expected 'id' to be a string, got {type(identifier).__name__}")
    outputs = _requested_outputs(request.get("outputs", []), parameters.get("binary_data_output") is True)
    images = _images(request.get("inputs"), memoryview(body)[json_bytes:], max_images)
    return InferenceRequest(images, outputs, identifier)


def _json_length(header_length: str | None, body_length: int) -> int:
    if header_length is None:
        return body_length
    if not (header_length.isascii() and header_length.isdigit() and len(header_length) < 20):
        raise ValueError(f"expected the header {HEADER_LENGTH} to be a number of bytes")
    if (length := int(header_length)) > body_length:
        raise ValueError(f"the header {HEADER_LENGTH} is {length}, but the body has {body_length} bytes")
    return length


def _parameters(holder: dict[str, Any], name: str) -> dict[str, Any]:
    parameters = holder.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ValueError(f"expected 'parameters' of {name} to be an object")
    return parameters


def _requested_outputs(outputs: Any, is_binary: bool) -> dict[str, bool]:
    """Return the requested outputs in the order of the request. An empty list stands for all outputs."""
    if outputs == []:
        return dict.fromkeys(OUTPUTS, is_binary)
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise ValueError("expected 'outputs' to be a list of objects")
    requested: dict[str, bool] = {}
    for output in outputs:
        if (name := output.get("name")) not in (*OUTPUTS,):
            raise ValueError(f"expected the outputs {', '.join(OUTPUTS)}, got {shorten(repr(name))}")
        requested[name] = _parameters(output, f"the output '{name}'").get("binary_data", is_binary) is True
    return requested


def _images(inputs: Any, binary: memoryview, max_images: int) -> list[ImageInput]:
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise ValueError(f"expected 'inputs' to be a list of one object, the input '{INPUT}'")
    (tensor,) = inputs
    if tensor.get("name") != INPUT:
        raise ValueError(f"expected the input '{INPUT}', got {shorten(repr(tensor.get('name')))}")
    shape, datatype = check_shape(tensor.get("shape")), check_datatype(tensor.get("datatype"))
    if len(shape) not in ((1,) if datatype == BYTES else (3, 4)):
        expected = "[n]" if datatype == BYTES else "[n, height, width] or [n, height, width, channels]"
        raise ValueError(f"expected {datatype} of shape {expected}, got {list(shape)}")
    if not 1 <= shape[0] <= max_images:
        raise ValueError(f"expected 1 to {max_images} images in a request, got {shape[0]}")
    if math.prod(shape) == 0:
        raise ValueError(f"expected images with pixels, got shape {list(shape)}")
    size = _parameters(tensor, f"the input '{INPUT}'").get("binary_data_size")
    if size is None:
        if len(binary):
            raise ValueError(f"{len(binary)} bytes follow the JSON object, but no input has a 'binary_data_size'")
        data = tensor.get("data")
        if datatype == BYTES:
            return [*files_from_json(data, shape)]
        return list(tensor_from_json(data, datatype, shape))
    if type(size) is not int or size != len(binary) or "data" in tensor:
        raise ValueError(
            f"expected 'binary_data_size' {len(binary)}, the number of bytes after the JSON object, and no 'data'"
        )
    if datatype == BYTES:
        return [*files_from_binary(binary, shape)]
    return list(tensor_from_binary(binary, datatype, shape))


def format_response(model: str, request: InferenceRequest, answer: Answer) -> tuple[bytes, int | None]:
    """Write the body of an inference response.

    Args:
        model: Name of the model.
        request: The request.
        answer: The outputs of the network.

    Returns:
        The body, and the number of bytes of its JSON object, or None if no binary data follows.
    """
    outputs: list[dict[str, Any]] = []
    binary: list[bytes] = []
    for name, is_binary in request.outputs.items():
        values = getattr(answer, name)
        shape = list(values.shape) if isinstance(values, np.ndarray) else [len(values)]
        output: dict[str, Any] = {"name": name, "datatype": OUTPUTS[name], "shape": shape}
        if is_binary:
            binary.append(tensor_to_binary(values))
            output["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            output["data"] = tensor_to_json(values)
        outputs.append(output)
    response: dict[str, Any] = {"model_name": model, "outputs": outputs}
    if request.id is not None:
        response["id"] = request.id
    header = json.dumps(response, allow_nan=False).encode()
    return b"".join([header, *binary]), len(header) if binary else None


def describe_model(name: str, in_maps: int, num_classes: int) -> dict[str, Any]:
    """Return the metadata of a model, as the protocol defines them.

    Args:
        name: Name of the model.
        in_maps: Number of channels that the network reads.
        num_classes: Number of classes.

    Returns:
        A JSON object. -1 stands for any length; a network of one channel also reads colour images.

    Example:
        >>> describe_model("digits", 3, 10)["inputs"]
        [{'name': 'image', 'datatype': 'UINT8', 'shape': [-1, -1, -1, 3]}]
    """
    shapes = {"label": [-1], "probability": [-1], "probabilities": [-1, num_classes], "unknown": [-1]}
    return {
        "name": name,
        "platform": "pytorch_tigranet",
        "inputs": [{"name": INPUT, "datatype": "UINT8", "shape": [-1, -1, -1, in_maps if in_maps > 1 else -1]}],
        "outputs": [
            {"name": output, "datatype": datatype, "shape": shapes[output]} for output, datatype in OUTPUTS.items()
        ],
    }
