"""Small and read-only file systems, mounted for the duration of a case. Mounting needs the rights of root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CannotMountError(Exception):
    """Raised where this user may not mount file systems."""


@contextmanager
def small_disk(folder: Path, free_kib: int) -> Iterator[None]:
    """Replace a folder by a file system in memory with the same files and a little free space.

    Args:
        folder: The folder. After the block it has the files that the file system held.
        free_kib: Free space in KiB, beyond the files that are already there.

    Yields:
        Nothing.

    Raises:
        CannotMountError: If the file system cannot be mounted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder.with_name(f"{folder.name}-kept")
    subprocess.run(["cp", "-a", str(folder), str(kept)], check=True)
    _mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder))
    try:
        _replace_content(kept, folder)
        used = _used_kib(folder)
        _mount("-o", f"remount,size={used + free_kib}k", str(folder))
        yield
        _replace_content(folder, kept)
    finally:
        _unmount(folder)
    _replace_content(kept, folder)
    subprocess.run(["rm", "-r", str(kept)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, also for root.

    Args:
        folder: The folder.

    Yields:
        Nothing.

    Raises:
        CannotMountError: If the file system cannot be mounted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        _unmount(folder)


def _replace_content(source: Path, target: Path) -> None:
    subprocess.run(["find", str(target), "-mindepth", "1", "-delete"], check=True)
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


def _used_kib(folder: Path) -> int:
    columns = subprocess.run(["df", "-k", "--output=used", str(folder)], check=True, capture_output=True, text=True)
    return int(columns.stdout.split()[-1])


def _mount(*arguments: str) -> None:
    process = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if process.returncode != 0:
        raise CannotMountError(process.stderr.strip().splitlines()[-1])


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)
