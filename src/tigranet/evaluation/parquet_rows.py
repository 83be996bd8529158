"""Rows of tables as Parquet: text columns as strings, and all others as doubles."""

import os
import re
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
"""Values by column name."""
TEXT_COLUMN = re.compile(r"path|error|label(s|_\d+)?")
"""Names of the columns that hold text; all others hold numbers."""


def parquet_schema(names: Sequence[str], metadata: dict[str, str] | None = None) -> Any:
    """Return the types of columns.

    Args:
        names: Column names.
        metadata: Texts to store in the file.

    Returns:
        A schema of pyarrow.

    Raises:
        ModuleNotFoundError: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise ModuleNotFoundError("writing Parquet needs pyarrow: pip install 'tigranet[parquet]'") from None
    fields = [(as_utf8(name), pa.string() if TEXT_COLUMN.fullmatch(name) else pa.float64()) for name in names]
    return pa.schema(fields, metadata)


def parquet_row(row: Row) -> Row:
    """Return a row whose names and texts are UTF-8.

    Args:
        row: Values by column name.

    Returns:
        The row for a table with the schema of :func:`parquet_schema`.
    """
    return {as_utf8(name): as_utf8(value) if isinstance(value, str) else value for name, value in row.items()}


def as_utf8(text: str) -> str:
    """Replace bytes of a path that are not UTF-8.

    Args:
        text: A text, in which such bytes are surrogates.

    Returns:
        A text that can be encoded.
    """
    return text if text.isascii() else os.fsencode(text).decode(errors="replace")
