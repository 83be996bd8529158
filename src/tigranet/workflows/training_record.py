"""Read ``training.json``: a file that a user, or anybody who passes a model on, may have changed."""

import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tigranet.json_file import read_json_object
from tigranet.quoted_text import shorten
from tigranet.training import Recipe

MAX_RECORD_BYTES = 128_000_000
"""Largest file, enough for the content hashes of 7 million training images."""
MAX_INTEGER = 2**63 - 1
"""Largest whole number in the record, the largest seed that PyTorch accepts."""
HASH_CHARACTERS, MIN_HASH_LENGTH = frozenset("0123456789abcdef "), 8
"""Content hashes are hexadecimal numbers of some length, separated by spaces."""

RECORD_TYPES: Mapping[str, Any] = {
    "seed": int,
    "group": str | None,
    "train_images": int | None,
    "recipe": dict,
    "seen": str,
    "tested": str | None,
    "data": str,
    "quick": bool,
    "is_larger": bool,
}
"""Types of the values that are used after the training."""


def read_training_record(path: Path) -> dict[str, Any]:
    """Read the record of a training, and check the types of the values that are used later.

    Args:
        path: Path of ``training.json``.

    Returns:
        The record. Values that are not known are kept.

    Raises:
        ValueError: If the file is not JSON, is too large, or has a value of a wrong type. The message names the file
            and, where there is one, the line.
        OSError: If the file cannot be read.
    """
    record = read_json_object(path, MAX_RECORD_BYTES, "a record of a training", allow_nan=True)
    try:
        for name, kind in RECORD_TYPES.items():
            if name in record:
                _check_type(name, record[name], kind)
        if record.get("seed", 0) < 0:
            raise ValueError(f"expected seed to be at least 0, got {record['seed']}")
        if (record.get("train_images") or 1) < 1:
            raise ValueError(f"expected train_images to be at least 1, got {record['train_images']}")
        hashes = record.get("seen", "")
        if not HASH_CHARACTERS.issuperset(hashes) or hashes.count(" ") > len(hashes) / MIN_HASH_LENGTH:
            raise ValueError(f"expected hexadecimal content hashes in seen, got '{shorten(hashes)}'")
        if "recipe" in record:
            record["recipe"] = _check_recipe(record["recipe"])
    except ValueError as error:
        raise ValueError(f"'{path}' is not a record of a training: {error}") from None
    return record


def _check_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Check names, types and values of the fields of a recipe, and return them; JSON may write 1.0 as 1."""
    kinds = get_type_hints(Recipe)
    fields: dict[str, Any] = {}
    for name, value in recipe.items():
        if name not in kinds:
            raise ValueError(f"unknown field '{shorten(name)}' of the recipe, expected {', '.join(kinds)}")
        _check_type(f"{name} of the recipe", value, kinds[name])
        fields[name] = float(value) if kinds[name] is float else value
    if recipe.get("seed", 0) < 0:
        raise ValueError(f"expected seed of the recipe to be at least 0, got {recipe['seed']}")
    Recipe(**({"epochs": 1} | fields))
    return fields


def _check_type(name: str, value: Any, kind: Any) -> None:
    """Raise an error if a JSON value is not of a type, of one of several, or one of the choices of a ``Literal``."""
    kinds = (kind,) if isinstance(kind, type) or get_origin(kind) is Literal else get_args(kind)
    if not any(_has_type(value, each) for each in kinds):
        expected = " or ".join(_describe(each) for each in kinds)
        raise ValueError(f"expected {name} to be {expected}, got {reprlib.repr(value)}")


def _has_type(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER
    if kind is float:
        return _has_type(value, int) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, kind)


def _describe(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    descriptions: Mapping[Any, str] = {
        int: "a whole number below 2**63",
        float: "a finite number",
        bool: "true or false",
        str: "text",
        dict: "an object",
        NoneType: "null",
    }
    return descriptions[kind]
