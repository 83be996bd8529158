"""The weights of a saved network: compared with the network by their header, then read, and checked for NaN."""

from collections.abc import Mapping
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load
from torch import Tensor

from tigranet.quoted_text import shorten
from tigranet.safetensors_header import StoredTensor

FLOATING_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""Types of learned numbers by their names in the format. All tensors of a network have the same one."""
OTHER_DTYPES = {"I64": torch.int64, "I32": torch.int32, "BOOL": torch.bool, "U8": torch.uint8}
"""Types of other buffers, which must be those of the network."""
CHUNK = 2**22
"""Number of elements that are checked for NaN at a time, which bounds the memory of the check."""


def check_stored_weights(path: Path, stored: Mapping[str, StoredTensor], expected: Mapping[str, Tensor]) -> None:
    """Check that a file holds the tensors of a network: their names, shapes and types.

    Learned numbers may be in any one precision, as a network may be converted before it is saved.

    Args:
        path: Path of the file, for error messages.
        stored: The tensors in the file, from its header.
        expected: The state of the network. Only names, shapes and types are used, so it may be on the device "meta".

    Raises:
        ValueError: If the file does not fit the network.
    """
    for problem, names in (("missing", expected.keys() - stored.keys()), ("unknown", stored.keys() - expected.keys())):
        if names:
            first, count = shorten(min(names)), f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise _does_not_fit(path, f"{problem} tensor '{first}'{count}")
    precision: str | None = None
    for name, tensor in expected.items():
        dtype, shape = stored[name].dtype, stored[name].shape
        if shape != tuple(tensor.shape):
            raise _does_not_fit(path, f"expected '{name}' of shape {tuple(tensor.shape)}, got {shape}")
        if not tensor.is_floating_point():
            if OTHER_DTYPES.get(dtype) != tensor.dtype:
                raise _does_not_fit(path, f"expected '{name}' in {tensor.dtype}, got {dtype}")
            continue
        precision = precision or dtype
        if dtype not in FLOATING_DTYPES or dtype != precision:
            floating = " or ".join(FLOATING_DTYPES)
            raise _does_not_fit(path, f"expected all weights in one of {floating}, got '{name}' in {dtype}")


def read_stored_weights(path: Path, device: str) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Args:
        path: The file.
        device: Where to put the tensors.

    Returns:
        The tensors by name.

    Raises:
        ValueError: If the file is damaged, or if a tensor holds NaN or infinity.
    """
    try:
        if _is_utf8(path):
            with safetensors.safe_open(path, framework="pt", device=device) as file:
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        else:  # safetensors opens only paths in UTF-8
            weights = {name: tensor.to(device) for name, tensor in load(path.read_bytes()).items()}
    except safetensors.SafetensorError as error:
        raise ValueError(f"'{path}' is not a complete safetensors file: {shorten(str(error))}") from None
    for name, tensor in weights.items():
        if not is_finite(tensor):
            raise ValueError(
                f"'{path}' holds NaN or infinity in '{name}', so the network cannot answer: train it again, "
                "or use an earlier version of the file"
            )
    return weights


def is_finite(tensor: Tensor) -> bool:
    """Return whether a tensor holds neither NaN nor infinity.

    Args:
        tensor: A tensor of any type.

    Returns:
        True if all elements are finite. Integers always are.
    """
    return not tensor.is_floating_point() or all(
        bool(torch.isfinite(chunk).all()) for chunk in tensor.flatten().split(CHUNK)
    )


def _does_not_fit(path: Path, reason: str) -> ValueError:
    return ValueError(f"'{path}' does not fit config.json: {reason}")


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
