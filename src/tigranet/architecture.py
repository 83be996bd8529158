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
class MC(Layer):
    """Fully-mixed spectral convolution, standardised and rectified: K_l maps, polynomials of degree M."""

    maps: int
    degree: int
    may_be_zero = ("degree",)


@dataclass(frozen=True)
class Pairs(Layer):
    """Products of so many pairs of mixtures of maps, which are smoothed so many times before; never unless told."""

    pairs: int
    smoothings: int = 0
    may_be_zero = ("smoothings",)


class OP(Pairs):
    """Oriented products, four a pair."""


class MP(Pairs):
    """Oriented products that a mirror does not change, two a pair."""


class GP(Pairs):
    """Products of gradients on any graph, one a pair."""


@dataclass(frozen=True)
class DP(Layer):
    """Dynamic pooling: the J_l strongest nodes of each map."""

    num_active: int


@dataclass(frozen=True)
class S(Layer):
    """Statistics of Chebyshev order 0 .. K_max."""

    order: int
    may_be_zero = ("order",)


GRAPH = (SC, MC, OP, MP, GP, DP)

PRESETS = {
    "paper-small": "SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "paper": "SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
    "oriented-small": "MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[32,5]-S[4]-FC[64]",
    "oriented": "MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[64,5]-S[4]-FC[96]",
    "oriented-large": "MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[96,3]-S[4]-FC[128]",
}
"""The two networks of Table 1, for MNIST-012 and for the other experiments; and the oriented networks."""


@dataclass(frozen=True)
class Architecture(Notation):
    """A network in the paper's notation: layers on the graph, a convolution first; one S; FC in any number.

    Convolutions are SC, the paper's, and MC; products are OP, MP and GP; DP is the pooling.

    The last layer, to the classes, is implicit (reading 11).

    >>> architecture = Architecture.parse("SC[10, 4]-DP[600]-S[12]-FC[100]")
    >>> architecture.layers[0]
    SC(maps=10, degree=4)
    >>> str(architecture)
    'SC[10,4]-DP[600]-S[12]-FC[100]'
    >>> str(Architecture.parse("paper-small"))
    'SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """

    FIRST = (SC, MC)
    FOLLOW: ClassVar = {**dict.fromkeys(GRAPH, (*GRAPH, S)), S: (FC,), FC: (FC,)}
    NEEDED = S
    ORDER = "an architecture is SC, MC, OP, MP, GP and DP layers, SC or MC first, then one S, then FC layers"
    PRESETS: ClassVar = PRESETS

    @property
    def mixed(self) -> bool:
        """Whether it has fully-mixed convolutions, as the oriented networks do."""
        return any(isinstance(layer, MC) for layer in self.layers)
