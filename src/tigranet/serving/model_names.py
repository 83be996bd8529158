"""The names under which a server offers its models."""

import re
from collections.abc import Iterable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A name that needs no escapes in an address."""


def name_models(models: Iterable[str]) -> dict[str, str]:
    """Read models as they are written on the command line.

    Args:
        models: The folder of a saved model or the name of a model, or ``NAME=FOLDER``. Without a name, the last part of
            the path is the name.

    Returns:
        The models by their names.

    Raises:
        ValueError: If there is no model, if two have the same name, or if a name cannot be part of an address.

    Example:
        >>> name_models(["runs/digits/", "steel=runs/7", "paper-mnist-012"])
        {'digits': 'runs/digits/', 'steel': 'runs/7', 'paper-mnist-012': 'paper-mnist-012'}
    """
    paths_by_name: dict[str, str] = {}
    for model in models:
        name, separator, path = model.partition("=")
        if not separator:
            name, path = re.split(r"[/\\]", model.rstrip("/\\"))[-1], model
        if not NAME.fullmatch(name):
            raise ValueError(
                f"'{name}' cannot be the name of a model in an address: expected letters, digits, '.', '_' and '-', "
                f"write NAME={path}"
            )
        if name in paths_by_name:
            raise ValueError(f"two models are called '{name}': write NAME={path}")
        paths_by_name[name] = path
    if not paths_by_name:
        raise ValueError("expected at least one model")
    return paths_by_name
