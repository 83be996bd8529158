"""Tensors of the Open Inference Protocol: JSON lists and binary data to arrays, and back.

Binary data is little-endian and row-major. Each element of type BYTES follows its length as an unsigned integer of four
bytes. In JSON, an element of type BYTES is a string.
"""

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

BYTES = "BYTES"
"""The type of strings and of files."""
DATATYPES = {
    "BOOL": np.dtype(bool),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
"""The types of numbers that images may have, by their names in the protocol."""
MAX_AXES = 8
"""Largest number of axes of a tensor."""


def check_shape(shape: Any) -> tuple[int, ...]:
    """Check the shape of a tensor in a request.

    Args:
        shape: A JSON value.

    Returns:
        The shape.

    Raises:
        ValueError: If it is not a list of at most ``MAX_AXES`` integers from 0 to 2**63 - 1.
    """
    is_list = isinstance(shape, list) and len(shape) <= MAX_AXES
    # bool is a subclass of int.
    if not is_list or not all(type(side) is int and 0 <= side < 2**63 for side in shape):
        raise ValueError(f"expected 'shape' to be a list of at most {MAX_AXES} integers of at least 0")
    return tuple(shape)


def check_datatype(datatype: Any) -> str:
    """Check the type of a tensor in a request.

    Args:
        datatype: A JSON value.

    Returns:
        The type.

    Raises:
        ValueError: If it is none of ``DATATYPES`` and not ``BYTES``.
    """
    if not isinstance(datatype, str) or datatype not in (*DATATYPES, BYTES):
        raise ValueError(f"expected 'datatype' to be one of {', '.join((*DATATYPES, BYTES))}")
    return datatype


def tensor_from_json(data: Any, datatype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Convert the JSON data of a tensor of numbers.

    Args:
        data: A list, flat or nested.
        datatype: One of ``DATATYPES``.
        shape: The declared shape.

    Returns:
        The array.

    Raises:
        ValueError: If the data is not a list of numbers of this type, or has another number of elements.

    Example:
        >>> tensor_from_json([0, 128, 255, 7], "UINT8", (2, 2)).tolist()
        [[0, 128], [255, 7]]
    """
    dtype = DATATYPES[datatype]
    kinds = {"b": "b", "u": "iu", "f": "iuf"}[dtype.kind]
    try:
        array = np.array(data) if isinstance(data, list) else np.array(None)
    except (ValueError, OverflowError):  # lists of different lengths
        array = np.array(None)
    if array.size and array.dtype.kind not in kinds:
        raise ValueError(f"expected 'data' to be a list of {datatype} values, nested evenly or flat")
    _check_count(array.size, shape)
    largest = 2 ** (8 * dtype.itemsize) - 1
    if dtype.kind == "u" and array.size and not 0 <= array.min() <= array.max() <= largest:
        raise ValueError(f"expected {datatype} values from 0 to {largest}, got {array.min()} to {array.max()}")
    with np.errstate(over="ignore"):  # values beyond the type become infinite, and are refused as pixels
        return array.astype(dtype).reshape(shape)


def tensor_from_binary(data: bytes | memoryview, datatype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Convert the binary data of a tensor of numbers.

    Args:
        data: The bytes.
        datatype: One of ``DATATYPES``.
        shape: The declared shape.

    Returns:
        The array, without a copy where possible.

    Raises:
        ValueError: If the number of bytes is not that of the declared type and shape.

    Example:
        >>> tensor_from_binary(bytes([1, 0, 2, 0]), "UINT16", (1, 2)).tolist()
        [[1, 2]]
    """
    dtype = DATATYPES[datatype]
    if len(data) != (expected := math.prod(shape) * dtype.itemsize):
        raise ValueError(f"expected {expected} bytes for {datatype} {list(shape)}, got {len(data)}")
    if dtype.kind == "b":
        return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    return np.frombuffer(data, dtype).reshape(shape)


def files_from_json(data: Any, shape: tuple[int, ...]) -> list[bytes]:
    """Convert the JSON data of a tensor of files, which are strings in base64.

    Args:
        data: A flat list of strings.
        shape: The declared shape.

    Returns:
        The contents of the files.

    Raises:
        ValueError: If the data is not a flat list of strings in base64, or has another number of elements.
    """
    if not isinstance(data, list) or not all(isinstance(element, str) for element in data):
        raise ValueError("expected 'data' to be a list of image files in base64")
    _check_count(len(data), shape)
    try:
        return [base64.b64decode(element, validate=True) for element in data]
    except (binascii.Error, ValueError):  # ValueError: characters that are not ASCII
        raise ValueError("expected the image files in 'data' in base64") from None


def files_from_binary(data: bytes | memoryview, shape: tuple[int, ...]) -> list[bytes]:
    r"""Convert the binary data of a tensor of files.

    Args:
        data: The bytes.
        shape: The declared shape.

    Returns:
        The contents of the files.

    Raises:
        ValueError: If a file is incomplete, or if there is another number of files.

    Example:
        >>> files_from_binary(b"\x02\0\0\0ab\x01\0\0\0c", (2,))
        [b'ab', b'c']
    """
    files: list[bytes] = []
    position = 0
    while position + 4 <= len(data) and len(files) <= math.prod(shape):
        (length,) = struct.unpack_from("<I", data, position)
        files.append(bytes(data[position + 4 : position + 4 + length]))
        position += 4 + length
    if position != len(data):
        raise ValueError(f"expected each element of {BYTES} after its length in 4 bytes, the data ends elsewhere")
    _check_count(len(files), shape)
    return files


def tensor_to_json(values: np.ndarray | Sequence[str]) -> list[Any]:
    """Convert an output to a flat list.

    Args:
        values: Numbers, booleans, or strings.

    Returns:
        The values in row-major order.
    """
    return values.ravel().tolist() if isinstance(values, np.ndarray) else list(values)


def tensor_to_binary(values: np.ndarray | Sequence[str]) -> bytes:
    """Convert an output to binary data.

    Args:
        values: Numbers in float32, booleans, or strings.

    Returns:
        The bytes.
    """
    if isinstance(values, np.ndarray):
        return values.tobytes() if values.dtype == bool else values.astype("<f4").tobytes()
    encoded = [value.encode("utf-8", "backslashreplace") for value in values]
    return b"".join(struct.pack("<I", len(element)) + element for element in encoded)


def _check_count(count: int, shape: tuple[int, ...]) -> None:
    if count != math.prod(shape):
        raise ValueError(f"the shape {list(shape)} has {math.prod(shape)} elements, 'data' has {count}")
