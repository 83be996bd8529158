"""Folders with entries that are neither image files nor folders of them, and with names that are hard to print."""

import os
import socket
import stat
from pathlib import Path

from hostile.image_files import encoded

ZERO_DEVICE = os.makedev(1, 5)
"""The device whose content never ends. A node for it is harmless, wherever it is."""


def make_zero_device(path: Path) -> None:
    """Make a device that can be read for ever; without the right to do so, a link to the one of the system."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, ZERO_DEVICE)
    except PermissionError:
        path.symlink_to("/dev/zero")


def make_special(path: Path, kind: str) -> None:
    """Make what is not an ordinary file: a pipe, a device, a directory, a link to itself or to nothing, or a hole.

    A hole is a file of a terabyte of zeros that takes no space.
    """
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        make_zero_device(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "itself":
        path.symlink_to(path.name)
    elif kind == "to-nothing":
        path.symlink_to("nothing")
    else:
        with path.open("wb") as file:
            file.truncate(10**12)


def make_all_special(folder: Path, suffix: str, kinds: tuple[str, ...]) -> list[Path]:
    """Make one special file of each kind, with its kind as its name, and return the paths."""
    paths = [folder / f"{kind}{suffix}" for kind in kinds]
    for path, kind in zip(paths, kinds, strict=True):
        make_special(path, kind)
    return paths


def make_socket(path: Path) -> None:
    """Make a socket. The path of a socket must be short, so it is given relative to its folder."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def add_special_files(folder: Path) -> list[str]:
    """Add entries with the suffixes of images that must be left out, and return the names that must be reported."""
    os.mkfifo(folder / "pipe.png")
    make_socket(folder / "socket.jpg")
    make_zero_device(folder / "device.tif")
    (folder / "itself.png").symlink_to("itself.png")
    (folder / "to-nothing.png").symlink_to("nothing.png")
    (folder / "one.png").symlink_to("other.png")
    (folder / "other.png").symlink_to("one.png")
    (folder / "to-pipe.bmp").symlink_to("pipe.png")
    return [
        "pipe.png",
        "socket.jpg",
        "device.tif",
        "itself.png",
        "to-nothing.png",
        "one.png",
        "other.png",
        "to-pipe.bmp",
    ]


def add_odd_entries(folder: Path) -> None:
    """Add entries that are skipped, or read like any other: loops of folders, deep folders, and odd names."""
    image = encoded("PNG", "L")
    os.mkfifo(folder / "pipe-without-suffix")
    (folder / "upwards").symlink_to("..")
    (folder / "here").symlink_to(".")
    (folder / "folder.png").mkdir()
    (folder / "folder.png" / "inside.png").write_bytes(image)
    (folder / "config.json").mkdir()
    os.mkfifo(folder / "model.safetensors")
    deep = folder.joinpath(*["deep"] * 100)
    deep.mkdir(parents=True)
    (deep / "image.png").write_bytes(image)
    (folder / ("long" * 60 + ".png")).write_bytes(image)
    for name in (
        b"not-\xff-utf-8.png",
        b"line\nbreak.png",
        b"tab\t.png",
        b"bell\x07\x1b[31mred.png",
        b"[bold]markup.png",
    ):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(image)


def add_broken_files_with_odd_names(folder: Path) -> None:
    """Add unreadable files whose names would control a terminal if they were printed as they are."""
    for name in (
        b"broken-\xff.png",
        b"broken\n.png",
        b"broken\x1b]0;title\x07.png",
        b"broken\x9b31m.png",
        b"[bold].png",
    ):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(b"broken")
