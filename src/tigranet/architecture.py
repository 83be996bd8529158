"""TIGraNet in the paper's notation, 'SC[10,4]-DP[600]-...', as a value that prints back exactly."""

from dataclasses import dataclass
from typing import ClassVar

from tigranet.notation import FC, Layer, Notation


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


PRESETS = {
    "paper-small": "SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "paper": "SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
}
"""The two networks of Table 1: for MNIST-012, and for the other experiments."""


@dataclass(frozen=True)
class Architecture(Notation):
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

    FIRST = (SC,)
    FOLLOW: ClassVar = {SC: (SC, DP, S), DP: (SC, DP, S), S: (FC,), FC: (FC,)}
    NEEDED = S
    ORDER = "an architecture is SC and DP layers, SC first, then one S, then FC layers"
    PRESETS: ClassVar = PRESETS
