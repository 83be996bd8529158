"""The notation of the paper's Table 1, 'NAME[number,...]-NAME[number,...]-...', as values that print back exactly."""

import re
from dataclasses import MISSING, astuple, dataclass, fields
from difflib import get_close_matches
from typing import ClassVar, TypeVar

T = TypeVar("T", bound="Notation")


@dataclass(frozen=True)
class Layer:
    """One layer of the notation: a name and whole numbers, ``NAME[number,...]``. A number that has a usual value is
    left out where it has it."""

    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value, smallest = getattr(self, field.name), 0 if field.name in self.may_be_zero else 1
            if value < smallest:
                raise ValueError(f"{type(self).__name__} has {field.name} of at least {smallest}, got {value}")

    def __str__(self) -> str:
        values = list(astuple(self))
        while values and values[-1] == fields(self)[len(values) - 1].default:
            values.pop()
        return f"{type(self).__name__}[{','.join(map(str, values))}]"


@dataclass(frozen=True)
class FC(Layer):
    """Fully-connected: that many hidden units."""

    units: int


@dataclass(frozen=True)
class Notation:
    """A network as layers in an order; a kind of network says which layers it has and what may follow what."""

    FIRST: ClassVar[tuple[type[Layer], ...]]
    FOLLOW: ClassVar[dict[type[Layer], tuple[type[Layer], ...]]]
    """After each kind of layer, the kinds that may follow it."""
    NEEDED: ClassVar[type[Layer]]
    """There is one of these."""
    ORDER: ClassVar[str]
    PRESETS: ClassVar[dict[str, str]]
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        allowed = self.FIRST
        for number, layer in enumerate(self.layers, start=1):
            if not isinstance(layer, allowed):
                wanted = " or ".join(kind.__name__ for kind in allowed) or "nothing more"
                raise ValueError(f"wanted {wanted} in layer {number} ('{layer}') of '{self}': {self.ORDER}")
            allowed = self.FOLLOW[type(layer)]
        if not any(isinstance(layer, self.NEEDED) for layer in self.layers):
            raise ValueError(f"wanted {self.NEEDED.__name__} after the last layer of '{self}': {self.ORDER}")

    @classmethod
    def parse(cls: type[T], text: str) -> T:
        """Read the notation, or the name of a preset."""
        if text not in cls.PRESETS and "[" not in text:
            near = get_close_matches(text, cls.PRESETS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"presets: {', '.join(cls.PRESETS)}"
            example = next(iter(cls.PRESETS.values()))
            raise ValueError(f"'{text}' is neither a preset nor layers such as '{example}': {hint}")
        text = cls.PRESETS.get(text, text)
        kinds = {kind.__name__: kind for kind in cls.FOLLOW}
        return cls(tuple(_layer(token, number, text, kinds) for number, token in enumerate(text.split("-"), start=1)))

    def __str__(self) -> str:
        return "-".join(map(str, self.layers))


def _layer(token: str, number: int, text: str, kinds: dict[str, type[Layer]]) -> Layer:
    where = f"in layer {number} ('{token}') of '{text}'"
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*\[([^\[\]]*)\]\s*", token)
    if match is None:
        raise ValueError(f"a layer is written NAME[number,...], which it is not {where}")
    name, inside = match.groups()
    if name not in kinds:
        raise ValueError(f"no layer is called '{name}' {where}: there are {', '.join(kinds)}")
    wanted = [field.name for field in fields(kinds[name])]
    needed = sum(field.default is MISSING for field in fields(kinds[name]))
    values = [value.strip() for value in inside.split(",")] if inside.strip() else []
    if not needed <= len(values) <= len(wanted):
        few = f"{needed} or " * (needed < len(wanted))
        numbers = f"{few}{len(wanted)} number{'s' * (len(wanted) > 1)} ({', '.join(wanted)})"
        raise ValueError(f"{name} takes {numbers}, got {len(values)} {where}")
    for field, value in zip(wanted, values, strict=False):
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(f"{name} takes a whole number for {field}, got '{value}' {where}")
    try:
        return kinds[name](*map(int, values))
    except ValueError as error:
        raise ValueError(f"{error} {where}") from None
