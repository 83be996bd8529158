"""The CUDA C++ sources, which are ``.cu`` files of this package."""

import re
from functools import cache
from importlib import resources


@cache
def read_source(name: str) -> str:
    """Read a source file and the files that it includes.

    Args:
        name: Name of the file, without ``.cu``.

    Returns:
        Its text, with every line ``#include "other.cu"`` replaced by the text of that file.
    """
    text = resources.files(__package__).joinpath(f"{name}.cu").read_text("utf-8")
    return re.sub(r'^#include "(\w+)\.cu"\n', lambda match: read_source(match[1]), text, flags=re.MULTILINE)
