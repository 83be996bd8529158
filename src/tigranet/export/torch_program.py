"""Networks as programs of ``torch.export``."""

import json
from pathlib import Path

import torch
from torch.export import Dim, ExportedProgram

from tigranet.atomic_files import atomic_binary_write
from tigranet.export.model_interface import ModelInterface

METADATA_FILE = "metadata.json"
"""Name of the file inside of a program that describes the network."""


def build_torch_program(interface: ModelInterface) -> ExportedProgram:
    """Export a network with ``torch.export``, for any batch size, height and width.

    PyTorch treats axes of length 0 and 1 as special cases, so that every side must have at least 2 pixels, also after
    the coarsenings of a pyramid. With a margin, every side must have at least 4 pixels, of which 2 are not at a corner.

    Args:
        interface: The exported version of the network.

    Returns:
        The program.
    """
    dynamic = {axis: Dim.DYNAMIC for axis, length in enumerate(interface.shape) if isinstance(length, str)}
    with torch.no_grad():
        return torch.export.export(interface.module, (interface.example(),), dynamic_shapes=(dynamic,), strict=False)


def save_torch_program(interface: ModelInterface, path: Path) -> None:
    """Save a network as a program that ``torch.export.load`` reads, without the tigranet package.

    Args:
        interface: The exported version of the network.
        path: The file, usually with the ending ``.pt2``. An older file is replaced once the new one is complete.

    Raises:
        OSError: If the file cannot be written.
    """
    program = build_torch_program(interface)
    with atomic_binary_write(path) as file:
        torch.export.save(program, file, extra_files={METADATA_FILE: json.dumps(interface.metadata)})
