"""The processes that a process has started, and their memory, as Linux lists them."""

import os
from pathlib import Path

PROCESSES = Path("/proc")


def descendants(root: int) -> dict[int, str]:
    """Return a process and those that descend from it, with their commands."""
    parents, commands = {}, {}
    for status in PROCESSES.glob("[0-9]*/stat"):
        try:
            text, command = status.read_text(), (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        number = int(status.parent.name)
        parents[number] = int(text.rsplit(")", 1)[1].split()[1])
        commands[number] = command.replace(b"\0", b" ").decode(errors="replace")
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: commands[process] for process in found if process in commands}


def resident_mib(process: int) -> float:
    """Return the memory of a process, or 0 if it has ended."""
    try:
        pages = int((PROCESSES / str(process) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
