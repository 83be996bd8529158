"""What was measured, a JSON line a run, in a file that several processes may add to."""

import json
import os
import sys
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

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
        if sys.platform != "win32":  # there, one process at a time
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        broken_off = file.read(1) not in (b"", b"\n")
        file.write(b"\n" + line if broken_off else line)
