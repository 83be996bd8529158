"""Read JSON files that may be damaged or hostile: limits first, and every error in one line that names the file."""

import json
import math
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from tigranet.quoted_text import shorten

MAX_JSON_VALUES = 1_000_000
"""Limit of the number of values in a file. An upper bound is counted before parsing, because each value takes up to a
hundred times as much memory as its text."""


def read_limited(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of limited size.

    Args:
        path: The file.
        max_bytes: Largest size in bytes.

    Returns:
        The content.

    Raises:
        ValueError: If the file is larger, or if it is a folder, or a device, a named pipe or a socket, whose content
            may not end.
        OSError: If the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # before open, whose error for a folder names a number only
        os.close(descriptor)
        raise ValueError(f"'{path}' is not a regular file")
    with open(descriptor, "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"'{path}' is too large: expected at most {max_bytes:,} bytes")
    return content


def read_json_object(path: Path, max_bytes: int, content: str, *, allow_nan: bool = False) -> dict[str, Any]:
    """Read a JSON object.

    Stricter than Python's parser: NaN, infinite numbers and repeated names are not JSON.

    Args:
        path: The file.
        max_bytes: Largest size of the file in bytes.
        content: What the file should hold, for the error message, such as "a configuration of TIGraNet".
        allow_nan: Whether NaN and infinite numbers are accepted, for files of measured numbers.

    Returns:
        The object.

    Raises:
        ValueError: If the file is too large, is not JSON in UTF-8, or holds another value than an object.
        OSError: If the file cannot be read.
    """
    return parse_json_object(read_limited(path, max_bytes), str(path), content, allow_nan=allow_nan)


def parse_json_object(data: bytes, source: str, content: str, *, allow_nan: bool = False) -> dict[str, Any]:
    """Parse a JSON object, with the checks of :func:`read_json_object`.

    Args:
        data: The text in UTF-8.
        source: Path of the file that it was read from, for the error message.
        content: What it should hold, for the error message.
        allow_nan: Whether NaN and infinite numbers are accepted.

    Returns:
        The object.

    Raises:
        ValueError: If the text is not JSON, or holds another value than an object.
    """
    try:
        text = data.decode("utf-8-sig")
        if sum(map(text.count, "[{,")) > MAX_JSON_VALUES:
            raise ValueError(f"expected at most {MAX_JSON_VALUES:,} values")
        number = float if allow_nan else _finite_number
        value = json.loads(text, object_pairs_hook=_object, parse_constant=number, parse_float=number)
    except RecursionError:
        raise ValueError(f"'{source}' is not JSON that can be read: its values are nested too deeply") from None
    except ValueError as error:
        reason = str(error).partition("; use sys.")[0]  # without the advice to programmers for a huge integer
        raise ValueError(f"'{source}' is not JSON: {reason}") from None
    if not isinstance(value, dict):
        raise ValueError(f"'{source}' is not {content}: expected a JSON object, got {type(value).__name__}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name '{shorten(repeated)}' occurs more than once in one object")
    return value


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected finite numbers, got {shorten(text)}")
    return number
