"""Find the processes of a local Ray cluster that this process has started."""

import os
from pathlib import Path


def started_workers(root: int) -> list[int]:
    """Return the worker processes of Ray that descend from a process, as Linux lists them."""
    parents, commands = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text, command = status.read_text(), (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(status.parent.name)] = int(text.rsplit(")", 1)[1].split()[1])
        commands[int(status.parent.name)] = command.decode(errors="replace")

    def descends(process: int) -> bool:
        while process not in (0, 1, root):
            process = parents.get(process, 0)
        return process == root

    return [process for process in commands if commands[process].startswith("ray::_predict") and descends(process)]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
