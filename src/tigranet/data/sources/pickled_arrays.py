"""Read pickles of arrays of bytes, in which older data sets were published, without running code from them.

A pickle is a program that may call any function. Here it can call two stand-ins that only store their arguments: one
for NumPy's array and one for its data type. Neither NumPy nor any other module takes part, so a manipulated file can at
worst be refused.
"""

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from tigranet.data.image_errors import one_line

MAX_MEMO_INDEX = 2**20
"""Largest number under which a pickle may store an object. The unpickler reserves memory up to that number."""


MEMO_OPCODES = ("PUT", "BINPUT", "LONG_BINPUT")
"""Instructions that store an object under a number."""


class PickledType:
    """Stand-in for ``numpy.dtype``.

    Args:
        name: Name of the type, such as 'u1'.
        *_: Further arguments of ``numpy.dtype``.
    """

    __slots__ = ("name",)

    def __init__(self, name: object, *_: object) -> None:
        self.name = name.decode("latin-1") if isinstance(name, bytes) else name

    def __setstate__(self, state: object) -> None:
        """Ignore the byte order and the fields, which a type of single bytes does not have."""


class PickledArray:
    """Stand-in for ``numpy.ndarray``.

    Args:
        *_: Arguments of NumPy's function that creates an empty array.
    """

    __slots__ = ("values",)

    def __init__(self, *_: object) -> None:
        self.values: np.ndarray | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, content = state
        if not isinstance(dtype, PickledType) or dtype.name not in ("u1", "|u1") or not isinstance(content, bytes):
            raise ValueError("expected an array of bytes (uint8), got one of another type")
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order="F" if is_fortran else "C")


STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): PickledType,
}
"""All that a pickle may refer to, by module and name."""


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in, or refuse everything else."""
        if (module, name) not in STAND_INS:
            raise ValueError(f"it refers to {module}.{name}, which could run code; only arrays of bytes are read")
        return STAND_INS[module, name]


def unpickle_arrays(content: bytes) -> dict[object, object]:
    """Read a pickled dictionary of arrays of bytes, numbers, texts and lists of these.

    Args:
        content: The pickle. Texts of Python 2 become ``bytes``.

    Returns:
        The dictionary.

    Raises:
        ValueError: If the pickle is damaged, is not a dictionary, or refers to anything except arrays of bytes.

    Example:
        >>> unpickle_arrays(pickle.dumps({"labels": [6, 9]}))
        {'labels': [6, 9]}
    """
    try:
        numbers = [int(number or 0) for code, number, _ in pickletools.genops(content) if code.name in MEMO_OPCODES]
        if max(numbers, default=0) > MAX_MEMO_INDEX:
            raise ValueError(f"it stores an object under the number {max(numbers)}, more than {MAX_MEMO_INDEX}")
        result = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a damaged pickle can raise any kind
        raise ValueError(f"not a pickle of arrays: {one_line(str(error)) or type(error).__name__}") from None
    if not isinstance(result, dict):
        raise ValueError(f"expected a pickled dictionary, got {type(result).__name__}")
    return {key: value.values if isinstance(value, PickledArray) else value for key, value in result.items()}
