"""Check that every file that a user can see is complete, whatever happened to the process that wrote it."""

import csv
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet
import safetensors
import torch
from PIL import Image

from tigranet.pretrained import GENERATED_CARD_MARK


def incomplete_files(folder: Path) -> list[str]:
    """Return the visible files in a folder and its sub-folders that cannot be read completely.

    Hidden files, whose names begin with a dot, are temporary and may be incomplete.

    Args:
        folder: The folder.

    Returns:
        Their paths relative to ``folder``, with the reasons.
    """
    problems = []
    for path in visible_files(folder):
        try:
            CHECKS.get(path.suffix, _check_nothing)(path)
        except Exception as error:  # a damaged file can raise any type
            problems.append(f"{path.relative_to(folder)}: {type(error).__name__}: {str(error)[:200]}")
    return problems


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its sub-folders of which no part of the name is hidden.

    Args:
        folder: The folder; it need not exist.

    Yields:
        Their paths in alphabetical order.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def temporary_files(folder: Path) -> list[Path]:
    """Return the hidden files and folders that an interrupted process has left in a folder.

    Args:
        folder: The folder; it need not exist.

    Returns:
        Their paths; of a hidden folder the path of the folder alone.
    """
    return [
        path
        for path in sorted(folder.rglob(".*"))
        if path.suffix != ".lock"  # the empty files of locks stay
        and not any(part.startswith(".") for part in path.relative_to(folder).parent.parts)
    ]


def make_older(paths: list[Path], seconds: float = 2 * 24 * 60 * 60) -> None:
    """Set back the modification times of files, as if the interrupted process had run days ago.

    Args:
        paths: Files and folders.
        seconds: By how much.
    """
    for path in paths:
        modified = path.stat().st_mtime - seconds
        os.utime(path, (modified, modified))


def _check_json(path: Path) -> None:
    json.loads(path.read_text())


def _check_csv(path: Path) -> None:
    text = path.read_text()
    widths = {len(row) for row in csv.reader(text.splitlines())}
    if len(widths) != 1 or not text.endswith("\n"):
        raise ValueError(f"rows of {sorted(widths)} columns, the last line ends with {text[-1:]!r}")


def _check_checkpoint(path: Path) -> None:
    if not torch.load(path, map_location="cpu", weights_only=True)["state_dict"]:
        raise ValueError("no weights")


def _check_weights(path: Path) -> None:
    with safetensors.safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a dict
            file.get_tensor(name)


def _check_image(path: Path) -> None:
    with Image.open(path) as image:
        image.load()


def _check_page(path: Path) -> None:
    if not path.read_text().rstrip().endswith("</html>"):
        raise ValueError("the page has no end")


def _check_card(path: Path) -> None:
    if GENERATED_CARD_MARK not in path.read_text():
        raise ValueError("the model card has no end")


def _check_parquet(path: Path) -> None:
    pyarrow.parquet.read_table(path)


def _check_pixels(path: Path) -> None:
    shape = json.loads(path.with_suffix(".json").read_text())["shape"]
    if path.stat().st_size != 4 * int(np.prod(shape)):
        raise ValueError(f"{path.stat().st_size} bytes for the shape {shape}")


def _check_nothing(path: Path) -> None:
    """Files of other programs, such as numba's compiled code, are checked by their readers."""


def _check_shard(path: Path) -> None:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            assert len(content.read()) == member.size
    assert path.stat().st_size % tarfile.RECORDSIZE == 0


def _check_index(path: Path) -> None:
    with path.open("rb") as file, np.load(file) as arrays:
        assert len(arrays["rows"])
    assert path.with_suffix(".tar").exists(), "an index without its shard"


CHECKS: dict[str, Callable[[Path], None]] = {
    ".json": _check_json,
    ".csv": _check_csv,
    ".ckpt": _check_checkpoint,
    ".safetensors": _check_weights,
    ".png": _check_image,
    ".html": _check_page,
    ".md": _check_card,
    ".parquet": _check_parquet,
    ".f4": _check_pixels,
    ".tar": _check_shard,
    ".npz": _check_index,
}
"""The check of each kind of file, by suffix."""
