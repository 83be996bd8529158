"""Model repositories of the Triton Inference Server."""

import re
from pathlib import Path

import torch

from tigranet.atomic_files import atomic_binary_write, atomic_write
from tigranet.export.model_interface import ModelInterface

MAX_BATCH_SIZE = 64
"""Largest number of images that the server puts into one batch."""
MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Names of models that servers accept in addresses and folders."""
DATA_TYPES = {torch.float32: "TYPE_FP32", torch.uint8: "TYPE_UINT8"}
"""Types of the input in the configuration of the server."""


def write_triton_repository(
    onnx_file: bytes, interface: ModelInterface, class_names: tuple[str, ...], repository: Path, name: str
) -> tuple[Path, ...]:
    """Write version 1 of a model to a model repository, which the OpenVINO Model Server reads too.

    Args:
        onnx_file: The content of the ONNX file.
        interface: The exported version of the network.
        class_names: Names of the classes.
        repository: Folder of the repository. It is created if it does not exist, and other models in it stay.
        name: Name of the model.

    Returns:
        The files: ``NAME/config.pbtxt``, ``NAME/labels.txt`` and ``NAME/1/model.onnx``.

    Raises:
        ValueError: If the name is not one that servers accept.
        OSError: If a file cannot be written.
    """
    if not MODEL_NAME.fullmatch(name):
        raise ValueError(
            f"expected a model name of letters, digits, '.', '_' and '-', got '{name}': choose another with --name"
        )
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    model, labels, config = folder / "1" / "model.onnx", folder / "labels.txt", folder / "config.pbtxt"
    with atomic_binary_write(model) as binary:
        binary.write(onnx_file)
    with atomic_write(labels) as text:
        text.writelines(f"{' '.join(class_name.split())}\n" for class_name in class_names)
    with atomic_write(config) as text:  # The last file, because a server loads a model that has a configuration.
        text.write(configuration(interface, name))
    return config, labels, model


def configuration(interface: ModelInterface, name: str) -> str:
    """Return the content of ``config.pbtxt``.

    Args:
        interface: The exported version of the network.
        name: Name of the model.

    Returns:
        The configuration as a protocol buffer in text form. The server adds the batch axis.
    """
    dims = ", ".join(str(length) if isinstance(length, int) else "-1" for length in interface.shape[1:])
    return f"""\
name: "{name}"
backend: "onnxruntime"
max_batch_size: {MAX_BATCH_SIZE}
input [
  {{
    name: "{interface.input_name}"
    data_type: {DATA_TYPES[interface.dtype]}
    dims: [ {dims} ]
  }}
]
output [
  {{
    name: "{interface.output_name}"
    data_type: TYPE_FP32
    dims: [ {interface.num_classes} ]
    label_filename: "labels.txt"
  }}
]
dynamic_batching {{ }}
"""
