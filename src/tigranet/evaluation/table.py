"""Answers written as rows: to a file that appears only when it is whole, or to the screen."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Protocol, runtime_checkable

from tigranet.evaluation.answers import Answer


@runtime_checkable
class Writable(Protocol):
    """A file, the screen, or whatever stands for them."""

    def write(self, text: str, /) -> object: ...


@contextmanager
def whole_file(path: Path | None) -> Iterator[Writable]:
    """A file to write to that replaces ``path`` at the end, if there was no error; the screen for None."""
    if path is None:
        yield sys.stdout
        return
    if not path.absolute().parent.is_dir():
        raise NotADirectoryError(f"'{path}' cannot be written: there is no folder '{path.parent}'")
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staged.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield file
        os.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)


def writer(file: Writable, as_json: bool) -> Callable[[Answer], None]:
    """A function that writes one answer: a row of CSV under a header, or a JSON object a line."""
    if as_json:
        return lambda answer: print(json.dumps(asdict(answer)), file=file)
    table = csv.DictWriter(file, [field.name for field in fields(Answer)], lineterminator="\n")
    table.writeheader()
    return lambda answer: table.writerow(asdict(answer))
