"""Class names from the names of folders, which are bytes and need not be UTF-8."""

import os
from collections.abc import Iterable
from pathlib import Path


def decode_folder_name(name: str) -> str:
    r"""Return the name of a folder as text that can be written as UTF-8, the same under every locale.

    Args:
        name: Name as Python's functions for files return it.

    Returns:
        The name, with bytes that are not UTF-8 written as ``\xff``.

    Example:
        >>> print(decode_folder_name("bolt"), decode_folder_name("caf\udce9"))
        bolt caf\xe9
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def decode_class_folders(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the class names of the sub-folders of a folder.

    Args:
        folder: The folder, for the error message.
        names: Names of its sub-folders.

    Returns:
        The name of each class, in the same order.

    Raises:
        ValueError: If two sub-folders would have the same class name.
    """
    classes: dict[str, str] = {}
    for name in names:
        other = classes.setdefault(decode_folder_name(name), name)
        if other != name:
            raise ValueError(
                f"the sub-folders {os.fsencode(other)!r} and {os.fsencode(name)!r} of '{folder}' have the same class "
                f"name '{decode_folder_name(name)}': rename one of them"
            )
    return tuple(classes)
