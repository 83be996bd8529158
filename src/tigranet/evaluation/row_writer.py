"""Write the rows of a table one by one: to a file that appears only when it is complete, or to standard output."""

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tigranet.atomic_files import atomic_binary_write, atomic_write
from tigranet.csv_text import quote_formula
from tigranet.evaluation.parquet_rows import Row, parquet_row, parquet_schema

PARQUET_ROW_GROUP = 4096
"""Number of rows that are buffered and written together to a Parquet file."""


@contextmanager
def open_row_writer(
    names: Sequence[str], csv_file: Path | None = None, parquet: Path | None = None, as_json: bool = False
) -> Iterator[Callable[[Row], None]]:
    """Open a destination for rows.

    Without a file, rows are printed: as CSV below a header, or as one JSON object per line. In CSV, text that a
    spreadsheet would execute as a formula is quoted (see :func:`tigranet.csv_text.quote_formula`).

    Args:
        names: Column names.
        csv_file: CSV file to write.
        parquet: Parquet file to write. It takes precedence over ``csv_file``.
        as_json: Whether to print JSON instead of CSV when there is no file.

    Yields:
        A function that writes one row, which must have a value for each of ``names``.

    Raises:
        OSError: If the file cannot be written.
        ModuleNotFoundError: If a Parquet file is requested and pyarrow is not installed.
    """
    if parquet is not None:
        with _parquet_writer(parquet, names) as write:
            yield write
    elif csv_file is not None:
        with atomic_write(csv_file) as file:
            yield _csv_writer(file, names)
    elif as_json:
        yield lambda row: print(json.dumps(row))
    else:
        yield _csv_writer(sys.stdout, names)


def _csv_writer(file: Any, names: Sequence[str]) -> Callable[[Row], None]:
    table = csv.DictWriter(file, names, lineterminator="\n")
    table.writerow({name: quote_formula(name) for name in names})

    def write(row: Row) -> None:
        table.writerow({name: quote_formula(value) if isinstance(value, str) else value for name, value in row.items()})

    return write


@contextmanager
def _parquet_writer(path: Path, names: Sequence[str]) -> Iterator[Callable[[Row], None]]:
    schema = parquet_schema(names)
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer: list[Row] = []

    def flush() -> None:
        table.write_table(pa.Table.from_pylist(buffer, schema))
        buffer.clear()

    def write(row: Row) -> None:
        buffer.append(parquet_row(row))
        if len(buffer) == PARQUET_ROW_GROUP:
            flush()

    with atomic_binary_write(path) as file, pq.ParquetWriter(file, schema) as table:
        yield write
        flush()
