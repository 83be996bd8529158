"""Training parameters that a user passes as Python values: check their types and turn them into fields of a recipe."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from tigranet.recipe_parameters import RECIPE_PARAMETERS

VALUE_TYPES: dict[Any, tuple[Any, str]] = {
    int: (Integral, "an integer"),
    float: (Real, "a number"),
    bool: (bool | np.bool_, "True or False"),
}
"""For each type in the table of parameters: the types of its values, which include NumPy's, and a description."""
NOT_OPTIONAL = ("schedule", "jitter", "flip", "balanced", "keep")
"""Parameters that cannot be None, because their defaults do not depend on the images and the network."""


def recipe_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the types of training parameters, and return those that are set as fields of a recipe.

    Values are checked by :class:`tigranet.training.Recipe`.

    Args:
        values: Values by the names of :data:`tigranet.recipe_parameters.RECIPE_PARAMETERS`. None stands for the default
            of the recipe.

    Returns:
        The values that are not None. Numbers of NumPy, which parameter searches draw, are converted to Python's.

    Raises:
        TypeError: If a value has a wrong type.

    Example:
        >>> recipe_fields({"epochs": np.int64(3), "zoom": None, "keep": "best"})
        {'epochs': 3, 'keep': 'best'}
    """
    fields = {}
    for name, value in values.items():
        optional = name not in NOT_OPTIONAL
        if value is None and optional:
            continue
        kind, description = _value_type(RECIPE_PARAMETERS[name].type)
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {description}{' or None' if optional else ''}, got {value!r}")
        fields[name] = _to_python(value)
    return fields


def _value_type(parameter_type: Any) -> tuple[Any, str]:
    choices = get_args(parameter_type)
    return (str, " or ".join(map(repr, choices))) if choices else VALUE_TYPES[parameter_type]


def _to_python(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return int(value) if isinstance(value, Integral) else float(value)
