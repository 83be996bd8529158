"""Compare the results of two runs bit by bit, except for times, dates and the typed command."""

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import safetensors
import torch

from torture.complete_files import visible_files

VARIABLE_KEYS = {"seconds", "training_seconds", "training time", "command", "date"}
"""Entries of JSON files, columns of CSV files and rows of a page that differ between equal runs."""
CHECKPOINT_KEYS = ("state_dict", "optimizer_states", "lr_schedulers", "epoch", "global_step")
"""Entries of a checkpoint that determine how the training continues."""


def fingerprints(folder: Path) -> dict[str, str]:
    """Return a digest of every visible result in a folder and its sub-folders.

    Args:
        folder: The folder.

    Returns:
        Digests by name: the path of a file, for weights and checkpoints followed by the name of the tensor or entry.
    """
    return dict(
        item
        for path in visible_files(folder)
        for item in _fingerprints_of_file(str(path.relative_to(folder)), path)
        if path.suffix not in (".nbi", ".nbc")  # compiled kernels
    )


def differences(reference: dict[str, str], result: dict[str, str]) -> list[str]:
    """Return the names whose digests differ, or that only one of the two runs has.

    Args:
        reference: The digests of the run that was not interrupted.
        result: The digests of the other run.

    Returns:
        The names in alphabetical order; none if the runs are equal bit by bit.
    """
    return sorted(name for name in reference.keys() | result.keys() if reference.get(name) != result.get(name))


def _fingerprints_of_file(name: str, path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".safetensors":
        with safetensors.safe_open(path, framework="pt") as file:
            yield f"{name}: metadata", _digest(sorted((file.metadata() or {}).items()))
            for tensor in file.keys():  # noqa: SIM118 - not a dict
                yield f"{name}: {tensor}", _digest(file.get_tensor(tensor))
    elif path.suffix == ".ckpt":
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        for key in CHECKPOINT_KEYS:
            yield f"{name}: {key}", _digest(checkpoint[key])
    else:
        yield name, READERS.get(path.suffix, _bytes_digest)(path)


def _json_digest(path: Path) -> str:
    return _digest(json.loads(path.read_text()))


def _csv_digest(path: Path) -> str:
    with path.open(newline="") as file:
        return _digest(list(csv.DictReader(file)))


def _page_digest(path: Path) -> str:
    variable = rf"<dt>({'|'.join(VARIABLE_KEYS)})</dt><dd>.*?</dd>"
    return _digest(re.sub(variable, "", path.read_text(), flags=re.DOTALL))


def _card_digest(path: Path) -> str:
    return _digest(re.sub(r"Trained by `.*?`", "", path.read_text(), flags=re.DOTALL))


def _bytes_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


READERS: dict[str, Callable[[Path], str]] = {
    ".json": _json_digest,
    ".csv": _csv_digest,
    ".html": _page_digest,
    ".md": _card_digest,
}
"""How files are read whose content differs in times or dates; all others are compared byte by byte."""


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _update(digest, value)
    return digest.hexdigest()


def _update(digest: Any, value: Any) -> None:
    """Add a nested value to a digest: tensors by type, shape and bytes."""
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        digest.update(b"{")
        for key in sorted(value, key=str):
            if key not in VARIABLE_KEYS:
                digest.update(f"{key!r}: ".encode())
                _update(digest, value[key])
        digest.update(b"}")
    elif isinstance(value, list | tuple):
        digest.update(b"[")
        for item in value:
            _update(digest, item)
        digest.update(b"]")
    else:
        digest.update(f"{value!r}, ".encode())
