"""What was measured, a JSON line a run, in a file that several processes may add to."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def records(path: Path) -> list[Record]:
    """Those that are there, in the order in which they were added; a line that was broken off is none."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def add_record(path: Path, record: Record) -> None:
    """One more, in one piece: lines that several processes add at once do not run into each other."""
    line = f"{json.dumps(record)}\n".encode()
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        size = file.seek(0, os.SEEK_END)
        broken_off = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write(b"\n" + line if broken_off else line)
