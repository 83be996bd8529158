"""The notation of the paper's Table 1, 'NAME[number,...]-NAME[number,...]-...', as values that print back exactly."""

import re
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, astuple, dataclass, fields
from difflib import get_close_matches
from numbers import Integral
from typing import ClassVar, TypeVar

from tigranet.quoted_text import shorten

T = TypeVar("T", bound="Notation")

MAX_LAYERS = 1_000
"""Largest number of layers of a network."""
MAX_CHARACTERS = 100_000
"""Longest text of a network."""
MAX_NUMBER = 1_000_000_000
"""Largest number in the notation. Kinds of layer may have lower limits, see :attr:`Layer.maxima`."""


@dataclass(frozen=True)
class Layer:
    """One layer of the notation, ``NAME[number,...]``: a name and whole numbers, or the name alone.

    A subclass defines one kind of layer. Its class name is the name in the notation and its fields are the numbers.
    Trailing numbers that equal their default are not printed.

    Raises:
        ValueError: If a number is too small or too large.
        TypeError: If a number is not an integer.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ()
    """Names of the fields whose smallest value is 0. The smallest value of all other fields is 1."""
    maxima: ClassVar[Mapping[str, int]] = {}
    """Largest values of fields. The largest value of all other fields is :data:`MAX_NUMBER`."""

    def __post_init__(self) -> None:
        for field in fields(self):
            name = f"{field.name} of {type(self).__name__}"
            value, minimum = getattr(self, field.name), 0 if field.name in self.may_be_zero else 1
            maximum = self.maxima.get(field.name, MAX_NUMBER)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise TypeError(f"expected {name} to be an integer, got {reprlib.repr(value)}")
            value = int(value)
            if value < minimum:
                raise ValueError(f"expected {name} to be at least {minimum}, got {value}")
            if value > maximum:
                raise ValueError(f"expected {name} to be at most {maximum:,}, got {value:,}")

    def __str__(self) -> str:
        values = list(astuple(self))
        while values and values[-1] == fields(self)[len(values) - 1].default:
            values.pop()
        return type(self).__name__ + (f"[{','.join(map(str, values))}]" if values else "")


@dataclass(frozen=True)
class FC(Layer):
    """Fully-connected layer, ``FC[units]``."""

    units: int
    """Number of hidden units."""
    maxima = {"units": 1_000_000}  # noqa: RUF012


@dataclass(frozen=True)
class Notation:
    """A network as a sequence of layers.

    A subclass defines one kind of network: which layers it has, and which layers may follow each other.

    Raises:
        ValueError: If the layers are in an order that this kind of network does not allow, or if there are more than
            :data:`MAX_LAYERS`.
    """

    FIRST: ClassVar[tuple[type[Layer], ...]]
    """Kinds of layer that may come first."""
    FOLLOW: ClassVar[dict[type[Layer], tuple[type[Layer], ...]]]
    """For each kind of layer, the kinds that may follow it."""
    NEEDED: ClassVar[type[Layer]]
    """Kind of layer that must occur at least once."""
    ORDER: ClassVar[str]
    """The rules above as a sentence, for error messages."""
    PRESETS: ClassVar[dict[str, str]]
    """Networks with a name, in the notation."""
    layers: tuple[Layer, ...]
    """The layers, from input to output."""

    def __post_init__(self) -> None:
        _check_number_of_layers(len(self.layers))
        allowed_kinds = self.FIRST
        for number, layer in enumerate(self.layers, start=1):
            if not isinstance(layer, allowed_kinds):
                expected = " or ".join(kind.__name__ for kind in allowed_kinds) or "no further layer"
                location = _location(str(layer), number, str(self))
                raise ValueError(f"expected {expected}, got {type(layer).__name__} {location}: {self.ORDER}")
            allowed_kinds = self.FOLLOW[type(layer)]
        if not any(isinstance(layer, self.NEEDED) for layer in self.layers):
            raise ValueError(
                f"expected {self.NEEDED.__name__} after the last layer of '{shorten(str(self))}': {self.ORDER}"
            )

    @classmethod
    def parse(cls: type[T], text: str) -> T:
        """Parse the notation of a network, or look up a preset.

        Spaces around layers, names and numbers are ignored.

        Args:
            text: Layers in the notation, or the name of a preset.

        Returns:
            The network as a value.

        Raises:
            ValueError: If the text is neither, or if it is too long. The message quotes the wrong layer and the text.
        """
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"expected the layers in at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
        if text not in cls.PRESETS and "[" not in text:
            similar_names = get_close_matches(text, cls.PRESETS, n=1)
            remedy = f"did you mean '{similar_names[0]}'?" if similar_names else f"presets: {', '.join(cls.PRESETS)}"
            example = next(iter(cls.PRESETS.values()))
            raise ValueError(f"expected a preset or layers such as '{example}', got '{shorten(text)}': {remedy}")
        text = cls.PRESETS.get(text, text)
        kinds = {kind.__name__: kind for kind in cls.FOLLOW}
        tokens = text.split("-")
        _check_number_of_layers(len(tokens))
        return cls(
            tuple(
                _parse_layer(token, _location(token, number, text), kinds)
                for number, token in enumerate(tokens, start=1)
            )
        )

    def __str__(self) -> str:
        return "-".join(map(str, self.layers))


def _check_number_of_layers(number: int) -> None:
    if number > MAX_LAYERS:
        raise ValueError(f"expected at most {MAX_LAYERS:,} layers, got {number:,}")


def _location(token: str, number: int, text: str) -> str:
    """Describe where a layer stands, for error messages."""
    return f"in layer {number} ('{shorten(token)}') of '{shorten(text)}'"


def _parse_layer(token: str, location: str, kinds: dict[str, type[Layer]]) -> Layer:
    """Parse one layer. ``kinds`` are the known kinds of layer by name."""
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*(?:\[([^\[\]]*)\]\s*)?", token)
    if match is None:
        raise ValueError(f"expected NAME[number,...] {location}: check the brackets, and write one '-' between layers")
    name, arguments = match.group(1), match.group(2) or ""
    if name not in kinds:
        raise ValueError(f"unknown layer '{shorten(name)}' {location}: use one of {', '.join(kinds)}")
    field_names = [field.name for field in fields(kinds[name])]
    num_required = sum(field.default is MISSING for field in fields(kinds[name]))
    values = [value.strip() for value in arguments.split(",")] if arguments.strip() else []
    remedy = f"write {name}[{','.join(field_names)}]" if field_names else f"write {name}"
    if not num_required <= len(values) <= len(field_names):
        count = " or ".join(map(str, range(num_required, len(field_names) + 1)))
        plural = "s" if len(field_names) > 1 else ""
        numbers = f"{count} number{plural} ({', '.join(field_names)})" if field_names else "no numbers"
        raise ValueError(f"{name} takes {numbers}, got {len(values)} {location}: {remedy}")
    for field_name, value in zip(field_names, values, strict=False):
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(
                f"{name} takes a whole number for {field_name}, got '{shorten(value)}' {location}: {remedy}"
            )
        if len(value.lstrip("0")) > len(str(MAX_NUMBER)):  # Python refuses to convert thousands of digits.
            digits = shorten(value)
            raise ValueError(f"expected {field_name} of {name} to be at most {MAX_NUMBER:,}, got {digits} {location}")
    try:
        return kinds[name](*(int(value.lstrip("0") or "0") for value in values))
    except ValueError as error:
        raise ValueError(f"{error} {location}") from None
