"""Read a checkpoint that may be damaged: every error is one line that names the file and the remedy."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tigranet.quoted_text import shorten
from tigranet.stored_weights import is_finite

REMEDY = "Delete it to start again"
CONTENT_TYPES: dict[str, type] = {
    "epoch": int,
    "global_step": int,
    "state_dict": dict,
    "loops": dict,
    "callbacks": dict,
    "optimizer_states": list,
    "lr_schedulers": list,
}
"""The values in a checkpoint without which a training cannot be resumed."""
AVERAGED_STATE = "averaged_state_dict"
"""The name of the averaged weights in a checkpoint. Only trainings that average their weights have them."""


def load_checkpoint(
    path: Path, expected_state: Mapping[str, Tensor] | None = None, averaged: bool = False
) -> dict[str, Any]:
    """Load a checkpoint of a training. No code from the file is run.

    Args:
        path: The file.
        expected_state: The state of the module that is trained, to compare names, shapes and types with, and to check
            the values of. None compares nothing.
        averaged: Whether the checkpoint must also have averaged weights.

    Returns:
        The content, with all tensors on the CPU.

    Raises:
        ValueError: If the file is empty, damaged, no checkpoint, or one of another network.
    """
    try:
        _check_archive(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
        _check_content(content, expected_state, averaged)
    except Exception as error:  # A damaged file can raise almost any type.
        reason = shorten((str(error).strip() or type(error).__name__).splitlines()[0])
        raise ValueError(f"cannot read the checkpoint '{path}': {reason}. {REMEDY}") from None
    return content


def _check_archive(path: Path) -> None:
    """Check that the file is a complete ZIP archive, as PyTorch writes it: without compression, so of known size."""
    if not path.is_file():
        raise ValueError("it is not a regular file")
    size = os.path.getsize(path)
    if size == 0:
        raise ValueError("it is empty (0 bytes)")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"its {size:,} bytes are not a complete archive of PyTorch")
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or (
            sum(entry.file_size for entry in entries) > size
        ):
            raise ValueError("it is compressed, which PyTorch's own checkpoints are not")
        if damaged := archive.testzip():
            raise ValueError(f"its entry '{damaged}' is damaged")


def _check_content(content: Any, expected_state: Mapping[str, Tensor] | None, averaged: bool) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"expected the state of a training, got {type(content).__name__}")
    for name, kind in (CONTENT_TYPES | ({AVERAGED_STATE: dict} if averaged else {})).items():
        if not isinstance(content.get(name), kind):
            raise ValueError(f"expected '{name}' to be {kind.__name__}, got {type(content.get(name)).__name__}")
    for name in ("state_dict", *([AVERAGED_STATE] if averaged else [])):
        _check_state(content[name], expected_state)


def _check_state(state: Mapping[str, Any], expected_state: Mapping[str, Tensor] | None) -> None:
    for name, tensor in state.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"expected '{name}' to be a tensor, got {type(tensor).__name__}")
        if expected_state is not None and name not in expected_state:
            raise ValueError(f"the network has no '{name}'")
    for name, expected in (expected_state or {}).items():
        if name not in state:
            raise ValueError(f"it has no '{name}'")
        if (state[name].shape, state[name].dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"expected '{name}' of shape {tuple(expected.shape)} in {expected.dtype}, "
                f"got {tuple(state[name].shape)} in {state[name].dtype}"
            )
        if not is_finite(state[name]):  # Checked last, as a tensor of a wrong shape may be of any size.
            raise ValueError(f"'{name}' holds NaN or infinity")
