"""The architecture of a TIGraNet in the paper's notation, 'SC[10,4]-DP[600]-...'."""

from dataclasses import dataclass
from typing import ClassVar

from tigranet.notation import FC, Layer, Notation

MAX_MAPS = 10_000
"""Largest number of maps, of pairs of maps, and of channels of the images."""
MAX_DEGREE = 1_000
"""Largest degree of a polynomial filter, and largest order of the statistics."""
MAX_SMOOTHINGS = 100
"""Largest number of smoothings of a product layer."""


@dataclass(frozen=True)
class SC(Layer):
    """Spectral convolution of the paper, ``SC[maps,degree]``."""

    maps: int
    """Number of output maps, K_l."""
    degree: int
    """Degree M of the polynomial filters."""
    may_be_zero = ("degree",)
    maxima = {"maps": MAX_MAPS, "degree": MAX_DEGREE}  # noqa: RUF012


@dataclass(frozen=True)
class MC(Layer):
    """Spectral convolution with one filter per pair of input and output map, ``MC[maps,degree]``.

    Standardisation and a ReLU follow it.
    """

    maps: int
    """Number of output maps, K_l."""
    degree: int
    """Degree M of the polynomial filters."""
    may_be_zero = ("degree",)
    maxima = {"maps": MAX_MAPS, "degree": MAX_DEGREE}  # noqa: RUF012


@dataclass(frozen=True)
class ProductLayer(Layer):
    """Products of pairs of maps, each a learned linear combination of the input maps."""

    pairs: int
    """Number of pairs."""
    smoothings: int = 0
    """How many times the maps are smoothed before they are multiplied."""
    may_be_zero = ("smoothings",)
    maxima = {"pairs": MAX_MAPS, "smoothings": MAX_SMOOTHINGS}  # noqa: RUF012


class OP(ProductLayer):
    """Oriented products, four per pair, ``OP[pairs,smoothings]``."""


class MP(ProductLayer):
    """Oriented products that are invariant to reflections, two per pair, ``MP[pairs,smoothings]``."""


class GP(ProductLayer):
    """Products of gradients on any graph, one per pair, ``GP[pairs,smoothings]``."""


@dataclass(frozen=True)
class DP(Layer):
    """Dynamic pooling, ``DP[num_active]``."""

    num_active: int
    """Number of active nodes per map, J_l."""


@dataclass(frozen=True)
class S(Layer):
    """Statistics of Chebyshev polynomials, ``S[order]``."""

    order: int
    """Largest order, K_max. The orders are 0 .. K_max."""
    may_be_zero = ("order",)
    maxima = {"order": MAX_DEGREE}  # noqa: RUF012


GRAPH_LAYERS = (SC, MC, OP, MP, GP, DP)
"""The kinds of layer that work on signals on the graph."""

PRESETS = {
    "paper-small": "SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "paper": "SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
    "oriented-small": "MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[32,5]-S[4]-FC[64]",
    "oriented": "MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[64,5]-S[4]-FC[96]",
    "oriented-large": "MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[96,3]-S[4]-FC[128]",
}
"""Architectures with a name: the two networks of Table 1 (MNIST-012, other experiments) and the oriented networks."""


@dataclass(frozen=True)
class Architecture(Notation):
    """A TIGraNet in the paper's notation.

    Graph layers come first: the convolutions SC (the paper's) and MC, the products OP, MP and GP, and the pooling DP,
    in any order that starts with a convolution. Then come one statistics layer S and any number of fully-connected
    layers FC. The last fully-connected layer, with one output per class, is implicit (reading 11).

    Raises:
        ValueError: If the layers are in another order.

    Example:
        >>> architecture = Architecture.parse("SC[10, 4]-DP[600]-S[12]-FC[100]")
        >>> architecture.layers[0]
        SC(maps=10, degree=4)
        >>> str(architecture)
        'SC[10,4]-DP[600]-S[12]-FC[100]'
        >>> str(Architecture.parse("paper-small"))
        'SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """

    FIRST = (SC, MC)
    FOLLOW: ClassVar = {**dict.fromkeys(GRAPH_LAYERS, (*GRAPH_LAYERS, S)), S: (FC,), FC: (FC,)}
    NEEDED = S
    ORDER = "an architecture has SC, MC, OP, MP, GP and DP layers, starting with SC or MC, then one S, then FC layers"
    PRESETS: ClassVar = PRESETS

    @property
    def has_mixed_convolutions(self) -> bool:
        """Whether the network has MC layers, as the oriented networks do."""
        return any(isinstance(layer, MC) for layer in self.layers)
