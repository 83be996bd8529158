"""The notation of the paper's Table 1, 'NAME[number,...]-NAME[number,...]-...', as values that print back exactly."""

import re
from dataclasses import MISSING, astuple, dataclass, fields
from difflib import get_close_matches
from typing import ClassVar, TypeVar

T = TypeVar("T", bound="Notation")


@dataclass(frozen=True)
class Layer:
    """One layer of the notation, ``NAME[number,...]``: a name and whole numbers.

    A subclass defines one kind of layer. Its class name is the name in the notation and its fields are the numbers.
    Trailing numbers that equal their default are not printed.

    Raises:
        ValueError: If a number is too small.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ()
    """Names of the fields whose smallest value is 0. The smallest value of all other fields is 1."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, minimum = getattr(self, field.name), 0 if field.name in self.may_be_zero else 1
            if value < minimum:
                raise ValueError(
                    f"expected {field.name} of {type(self).__name__} to be at least {minimum}, got {value}"
                )

    def __str__(self) -> str:
        values = list(astuple(self))
        while values and values[-1] == fields(self)[len(values) - 1].default:
            values.pop()
        return f"{type(self).__name__}[{','.join(map(str, values))}]"


@dataclass(frozen=True)
class FC(Layer):
    """Fully-connected layer, ``FC[units]``."""

    units: int
    """Number of hidden units."""


@dataclass(frozen=True)
class Notation:
    """A network as a sequence of layers.

    A subclass defines one kind of network: which layers it has, and which layers may follow each other.

    Raises:
        ValueError: If the layers are in an order that this kind of network does not allow.
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
        allowed_kinds = self.FIRST
        for number, layer in enumerate(self.layers, start=1):
            if not isinstance(layer, allowed_kinds):
                expected = " or ".join(kind.__name__ for kind in allowed_kinds) or "no further layer"
                location = _location(str(layer), number, str(self))
                raise ValueError(f"expected {expected}, got {type(layer).__name__} {location}: {self.ORDER}")
            allowed_kinds = self.FOLLOW[type(layer)]
        if not any(isinstance(layer, self.NEEDED) for layer in self.layers):
            raise ValueError(f"expected {self.NEEDED.__name__} after the last layer of '{self}': {self.ORDER}")

    @classmethod
    def parse(cls: type[T], text: str) -> T:
        """Parse the notation of a network, or look up a preset.

        Spaces around layers, names and numbers are ignored.

        Args:
            text: Layers in the notation, or the name of a preset.

        Returns:
            The network as a value.

        Raises:
            ValueError: If the text is neither. The message quotes the wrong layer and the whole text.
        """
        if text not in cls.PRESETS and "[" not in text:
            similar_names = get_close_matches(text, cls.PRESETS, n=1)
            remedy = f"did you mean '{similar_names[0]}'?" if similar_names else f"presets: {', '.join(cls.PRESETS)}"
            example = next(iter(cls.PRESETS.values()))
            raise ValueError(f"expected a preset or layers such as '{example}', got '{text}': {remedy}")
        text = cls.PRESETS.get(text, text)
        kinds = {kind.__name__: kind for kind in cls.FOLLOW}
        tokens = enumerate(text.split("-"), start=1)
        return cls(tuple(_parse_layer(token, _location(token, number, text), kinds) for number, token in tokens))

    def __str__(self) -> str:
        return "-".join(map(str, self.layers))


def _location(token: str, number: int, text: str) -> str:
    """Describe where a layer stands, for error messages."""
    return f"in layer {number} ('{token}') of '{text}'"


def _parse_layer(token: str, location: str, kinds: dict[str, type[Layer]]) -> Layer:
    """Parse one layer. ``kinds`` are the known kinds of layer by name."""
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*\[([^\[\]]*)\]\s*", token)
    if match is None:
        raise ValueError(f"expected NAME[number,...] {location}: check the brackets, and write one '-' between layers")
    name, arguments = match.groups()
    if name not in kinds:
        raise ValueError(f"unknown layer '{name}' {location}: use one of {', '.join(kinds)}")
    field_names = [field.name for field in fields(kinds[name])]
    num_required = sum(field.default is MISSING for field in fields(kinds[name]))
    values = [value.strip() for value in arguments.split(",")] if arguments.strip() else []
    remedy = f"write {name}[{','.join(field_names)}]"
    if not num_required <= len(values) <= len(field_names):
        count = f"{num_required} or {len(field_names)}" if num_required < len(field_names) else f"{num_required}"
        numbers = f"{count} number{'s' if len(field_names) > 1 else ''} ({', '.join(field_names)})"
        raise ValueError(f"{name} takes {numbers}, got {len(values)} {location}: {remedy}")
    for field_name, value in zip(field_names, values, strict=False):
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(f"{name} takes a whole number for {field_name}, got '{value}' {location}: {remedy}")
    try:
        return kinds[name](*map(int, values))
    except ValueError as error:
        raise ValueError(f"{error} {location}") from None
