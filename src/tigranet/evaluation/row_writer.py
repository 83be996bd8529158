"""Rows of a table written one after the other: to a file that appears only when it is whole, or to the screen."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tigranet.atomic_files import atomic_write, check_writable

Row = dict[str, Any]
ROW_GROUP = 4096


@contextmanager
def rows_to(
    names: Sequence[str], csv_file: Path | None = None, parquet: Path | None = None, as_json: bool = False
) -> Iterator[Callable[[Row], None]]:
    """A function that writes one row, with values for ``names``: to a CSV file, to a Parquet file, to the screen as
    CSV under a header, or as a JSON object a line."""
    if parquet is not None:
        with _parquet(parquet, names) as write:
            yield write
    elif csv_file is not None:
        with atomic_write(csv_file) as file:
            yield _csv(file, names)
    elif as_json:
        yield lambda row: print(json.dumps(row))
    else:
        yield _csv(sys.stdout, names)


def _csv(file: Any, names: Sequence[str]) -> Callable[[Row], None]:
    table = csv.DictWriter(file, names, lineterminator="\n")
    table.writeheader()
    return table.writerow


@contextmanager
def _parquet(path: Path, names: Sequence[str]) -> Iterator[Callable[[Row], None]]:
    """Numbers are doubles, all else text; a name of a file that is not UTF-8 is written with '?' for what is not."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Parquet is written by pyarrow: pip install 'tigranet[parquet]'") from None
    texts = ("path", "label")
    schema = pa.schema([(name, pa.string() if name in texts else pa.float64()) for name in names])
    rows: list[Row] = []
    staged = path.with_name(f".{path.name}.{os.getpid()}")

    def flush() -> None:
        table.write_table(pa.Table.from_pylist(rows, schema))
        rows.clear()

    def write(row: Row) -> None:
        rows.append(
            {name: os.fsencode(row[name]).decode(errors="replace") if name in texts else row[name] for name in names}
        )
        if len(rows) == ROW_GROUP:
            flush()

    check_writable(path)
    try:
        with pq.ParquetWriter(staged, schema) as table:
            yield write
            flush()
        os.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)
