"""Measured results, one JSON object per line, in a file that several processes may append to."""

import json
import os
import sys
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

Record = dict[str, Any]
"""The result of one run, as plain values."""


def read_records(path: Path) -> list[Record]:
    """Read the results in a file.

    Args:
        path: The file; it need not exist.

    Returns:
        The records in the order in which they were added, without incomplete lines.
    """
    records = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:  # the process that wrote the line was killed
            continue
    return records


def append_record(path: Path, record: Record) -> None:
    """Append one result to a file. Lines that several processes append at the same time are not mixed.

    Args:
        path: The file.
        record: The result.
    """
    line = f"{json.dumps(record)}\n".encode()
    with path.open("ab+") as file:
        if sys.platform != "win32":  # on Windows, only one process may append
            fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        last_line_is_incomplete = file.read(1) not in (b"", b"\n")
        file.write(b"\n" + line if last_line_is_incomplete else line)
