"""Limits of the size of a network, checked before any memory is used for it.

They are far beyond every useful network, and keep a mistyped number or a damaged configuration from filling the memory.
"""

import reprlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from tigranet.architecture import DP, GB, GC, GP, LC, MC, MO, MP, OP, SC, Architecture, D, R, S
from tigranet.circular_harmonics import basis_size
from tigranet.notation import FC
from tigranet.quoted_text import shorten

MAX_CLASSES = 100_000
"""Largest number of classes."""
MAX_PARAMETERS = 2**31
"""Largest number of parameters, which take 8 GiB in float32."""
MAX_IMAGE_SIZE = 16_384
"""Largest side length of the training images in pixels."""
MAX_MARGIN = 1_024
"""Largest number of pixels of background that a network adds to each side of an image."""
PRODUCTS_PER_PAIR = {OP: 4, MP: 2, GP: 1}
"""Number of maps that each kind of product layer appends per pair."""


def check_integer(name: str, value: Any, maximum: int, minimum: int = 1) -> int:
    """Check a whole number.

    Args:
        name: Name of the argument, for the error message.
        value: Value of the argument. NumPy's integers are accepted.
        maximum: Largest value.
        minimum: Smallest value.

    Returns:
        The value as Python's integer.

    Raises:
        TypeError: If the value is not an integer.
        ValueError: If it is out of range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected {name} to be an integer, got {reprlib.repr(value)}")
    number = value.__index__()
    if not minimum <= number <= maximum:
        amount = f"{number:,}" if abs(number) < 10**18 else "a number of more than 18 digits"
        raise ValueError(f"expected {name} to be at least {minimum} and at most {maximum:,}, got {amount}")
    return int(number)


def check_choice(name: str, value: str, choices: Any) -> None:
    """Check a choice.

    Args:
        name: Name of the argument, for the error message.
        value: Value of the argument.
        choices: The ``Literal`` type of the accepted strings.

    Raises:
        ValueError: If the value is none of them.
    """
    if value not in get_args(choices):
        expected = " or ".join(map(repr, get_args(choices)))
        raise ValueError(f"expected {name} to be {expected}, got {value!r}")


def check_number(name: str, value: Any) -> float:
    """Check a number.

    Args:
        name: Name of the argument, for the error message.
        value: Value of the argument. NumPy's numbers are accepted.

    Returns:
        The value as Python's floating-point number.

    Raises:
        TypeError: If the value is not a number.
        ValueError: If it is too large for floating point.
    """
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"expected {name} to be a number, got {reprlib.repr(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"expected {name} to be a number in floating point, got a larger one") from None


def check_class_names(class_names: Any, num_classes: int) -> list[str] | None:
    """Check the names of the classes.

    Args:
        class_names: The names, or None for none.
        num_classes: Number of classes.

    Returns:
        The names as a list, or None.

    Raises:
        TypeError: If they are not a sequence of strings.
        ValueError: If their number is wrong, or if two are the same.
    """
    if class_names is None:
        return None
    if isinstance(class_names, str | bytes) or not isinstance(class_names, Sequence):
        raise TypeError(f"expected class_names to be a list of strings, got {reprlib.repr(class_names)}")
    if len(class_names) != num_classes:
        raise ValueError(f"expected one name per class, got {len(class_names)} names for {num_classes} classes")
    for position, name in enumerate(class_names):
        if not isinstance(name, str):
            raise TypeError(f"expected class_names to be strings, got {reprlib.repr(name)} at position {position}")
    name, count = Counter(class_names).most_common(1)[0]
    if count > 1:
        raise ValueError(f"expected different class_names, got '{shorten(name)}' {count} times")
    return [str(name) for name in class_names]


def check_model_size(architecture: Architecture, num_classes: int, in_maps: int) -> None:
    """Check that a network has at most :data:`MAX_PARAMETERS` parameters.

    Args:
        architecture: The layers.
        num_classes: Number of classes.
        in_maps: Number of channels of the images.

    Raises:
        ValueError: If it has more.
    """
    count = count_parameters(architecture, num_classes, in_maps)
    if count > MAX_PARAMETERS:
        raise ValueError(
            f"expected a network of at most {MAX_PARAMETERS:,} parameters, '{shorten(str(architecture))}' with "
            f"{num_classes:,} classes and {in_maps:,} channels has {count:,}"
        )


def count_parameters(architecture: Architecture, num_classes: int, in_maps: int) -> int:
    """Count the parameters of a network without building it.

    Args:
        architecture: The layers.
        num_classes: Number of classes.
        in_maps: Number of channels of the images.

    Returns:
        The number of learned parameters.

    Example:
        >>> count_parameters(Architecture.parse("paper-small"), num_classes=3, in_maps=1)
        8563
    """
    count, width = 0, in_maps
    orientations = 1
    for layer in architecture.layers:
        match layer:
            case SC(maps, degree):
                count, width = count + maps * (degree + 1) + width, maps
            case MC(maps, degree):
                count, width = count + maps * width * (degree + 1) + maps, maps
            case OP(pairs) | MP(pairs) | GP(pairs):
                count, width = count + 2 * pairs * width, width + PRODUCTS_PER_PAIR[type(layer)] * pairs
            case R(pairs, _, degree):
                products = width + PRODUCTS_PER_PAIR[OP] * pairs
                count += 2 * pairs * width + width * products * (degree + 1) + width
            case LC(features, size, orientations):
                count, width = count + features * width * basis_size(size), orientations * features
            case GC(features, size):
                count, width = count + features * width * basis_size(size), orientations * features
            case GB(size):
                features = width // orientations
                count += 2 * (2 * features + features * width * basis_size(size))
            case MO(maps):
                count, width = count + 2 * (width // orientations) + maps * width + 2 * maps, maps
            case S(order):
                width *= 2 * (order + 1)
            case FC(units):
                count, width = count + (width + 1) * units, units
            case DP() | D():
                pass  # Pooling and coarsening learn nothing.
    return count + (width + 1) * num_classes
