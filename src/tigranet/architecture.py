"""The paper's notation, 'SC[10,4]-DP[600]-...', as a value that prints back exactly."""

import re
from dataclasses import astuple, dataclass, fields
from difflib import get_close_matches
from typing import ClassVar


@dataclass(frozen=True)
class Layer:
    """One layer of the notation: a name and whole numbers, ``NAME[number,...]``."""

    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value, smallest = getattr(self, field.name), 0 if field.name in self.may_be_zero else 1
            if value < smallest:
                raise ValueError(f"{type(self).__name__} has {field.name} of at least {smallest}, got {value}")

    def __str__(self) -> str:
        return f"{type(self).__name__}[{','.join(map(str, astuple(self)))}]"


@dataclass(frozen=True)
class SC(Layer):
    """Spectral convolution: K_l maps, polynomials of degree M."""

    maps: int
    degree: int
    may_be_zero = ("degree",)


@dataclass(frozen=True)
class DP(Layer):
    """Dynamic pooling: the J_l strongest nodes of each map."""

    num_active: int


@dataclass(frozen=True)
class S(Layer):
    """Statistics of Chebyshev order 0 .. K_max."""

    order: int
    may_be_zero = ("order",)


@dataclass(frozen=True)
class FC(Layer):
    """Fully-connected: that many hidden units."""

    units: int


KINDS: dict[str, type[Layer]] = {kind.__name__: kind for kind in (SC, DP, S, FC)}
PRESETS = {
    "paper-small": "SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "paper": "SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
}
"""The two networks of Table 1: for MNIST-012, and for the other experiments."""


@dataclass(frozen=True)
class Architecture:
    """A network in the paper's notation: SC and DP in any number, SC first; one S; FC in any number.

    The last layer, to the classes, is implicit (reading 11).

    >>> architecture = Architecture.parse("SC[10, 4]-DP[600]-S[12]-FC[100]")
    >>> architecture.layers[0]
    SC(maps=10, degree=4)
    >>> str(architecture)
    'SC[10,4]-DP[600]-S[12]-FC[100]'
    >>> str(Architecture.parse("paper-small"))
    'SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """

    ORDER: ClassVar = "an architecture is SC and DP layers, SC first, then one S, then FC layers"
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        allowed: tuple[type[Layer], ...] = (SC,)
        for number, layer in enumerate(self.layers, start=1):
            if not isinstance(layer, allowed):
                wanted = " or ".join(kind.__name__ for kind in allowed)
                raise ValueError(f"wanted {wanted} in layer {number} ('{layer}') of '{self}': {self.ORDER}")
            allowed = (FC,) if isinstance(layer, S | FC) else (SC, DP, S)
        if SC in allowed:
            raise ValueError(f"wanted S after the last layer of '{self}': {self.ORDER}")

    @classmethod
    def parse(cls, text: str) -> "Architecture":
        """Read the notation, or the name of a preset."""
        if text not in PRESETS and "[" not in text:
            near = get_close_matches(text, PRESETS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"presets: {', '.join(PRESETS)}"
            raise ValueError(f"'{text}' is neither a preset nor layers such as '{PRESETS['paper-small']}': {hint}")
        text = PRESETS.get(text, text)
        return cls(tuple(_parse_layer(token, number, text) for number, token in enumerate(text.split("-"), start=1)))

    def __str__(self) -> str:
        return "-".join(map(str, self.layers))


def _parse_layer(token: str, number: int, text: str) -> Layer:
    where = f"in layer {number} ('{token}') of '{text}'"
    match = re.fullmatch(r"\s*([A-Za-z]+)\s*\[([^\[\]]*)\]\s*", token)
    if match is None:
        raise ValueError(f"a layer is written NAME[number,...], which it is not {where}")
    name, inside = match.groups()
    if name not in KINDS:
        raise ValueError(f"no layer is called '{name}' {where}: there are {', '.join(KINDS)}")
    kind = KINDS[name]
    wanted = [field.name for field in fields(kind)]
    values = [value.strip() for value in inside.split(",")] if inside.strip() else []
    if len(values) != len(wanted):
        numbers = f"{len(wanted)} number{'s' * (len(wanted) > 1)} ({', '.join(wanted)})"
        raise ValueError(f"{name} takes {numbers}, got {len(values)} {where}")
    for field, value in zip(wanted, values, strict=True):
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(f"{name} takes a whole number for {field}, got '{value}' {where}")
    try:
        return kind(*map(int, values))
    except ValueError as error:
        raise ValueError(f"{error} {where}") from None
