"""The architecture of a TIGraNet in the paper's notation, 'SC[10,4]-DP[600]-...'."""

from dataclasses import dataclass
from typing import ClassVar

from tigranet.notation import FC, Layer, Notation
from tigranet.quoted_text import shorten

MAX_MAPS = 10_000
"""Largest number of maps, of pairs of maps, and of channels of the images."""
MAX_DEGREE = 1_000
"""Largest degree of a polynomial filter, and largest order of the statistics."""
MAX_SMOOTHINGS = 100
"""Largest number of smoothings of a product layer."""
MAX_ORIENTATIONS = 64
"""Largest number of orientations of the features of group convolutions."""
MAX_FILTER_SIZE = 31
"""Largest side length of their filters in pixels."""


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
class R(Layer):
    """Residual block of oriented products, ``R[pairs,smoothings,degree]``.

    The input plus an MC layer of the input and its oriented products.
    """

    pairs: int
    """Number of pairs."""
    smoothings: int = 1
    """How many times the maps are smoothed before they are multiplied."""
    degree: int = 3
    """Degree of the polynomial filters."""
    may_be_zero = ("smoothings", "degree")
    maxima = {"pairs": MAX_MAPS, "smoothings": MAX_SMOOTHINGS, "degree": MAX_DEGREE}  # noqa: RUF012


@dataclass(frozen=True)
class LC(Layer):
    """Lifting convolution, ``LC[features,size,orientations]``: from maps to features with orientations."""

    features: int
    """Number of output features."""
    size: int
    """Side length of the filters in pixels, odd."""
    orientations: int = 8
    """Number of orientations, a multiple of 4."""
    maxima = {"features": MAX_MAPS, "size": MAX_FILTER_SIZE, "orientations": MAX_ORIENTATIONS}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_filter_size(self, self.size)
        if self.orientations % 4:
            raise ValueError(f"expected orientations of LC to be a multiple of 4, got {self.orientations}")


@dataclass(frozen=True)
class GC(Layer):
    """Group convolution, ``GC[features,size]``: from features with orientations to such features."""

    features: int
    """Number of output features."""
    size: int
    """Side length of the filters in pixels, odd."""
    maxima = {"features": MAX_MAPS, "size": MAX_FILTER_SIZE}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_filter_size(self, self.size)


@dataclass(frozen=True)
class GB(Layer):
    """Residual block of two group convolutions, ``GB[size]``."""

    size: int
    """Side length of the filters in pixels, odd."""
    maxima = {"size": MAX_FILTER_SIZE}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_filter_size(self, self.size)


@dataclass(frozen=True)
class MO(Layer):
    """Maximum over the orientations, ``MO[maps]``: from features with orientations to maps without."""

    maps: int
    """Number of output maps."""
    maxima = {"maps": MAX_MAPS}  # noqa: RUF012


def _check_filter_size(layer: Layer, size: int) -> None:
    if size % 2 == 0:
        raise ValueError(f"expected size of {type(layer).__name__} to be odd, got {size}")


@dataclass(frozen=True)
class D(Layer):
    """Coarsening, ``D``: half the height and width."""


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


MAP_LAYERS = (SC, MC, OP, MP, GP, R, DP)
"""The kinds of layer that work on maps without orientations."""
ORIENTATION_LAYERS = (GC, GB, MO)
"""The kinds of layer that work on features with orientations."""

PRESETS = {
    "paper-small": "SC[3,3]-DP[300]-SC[6,3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "paper": "SC[10,4]-DP[600]-SC[20,4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
    "oriented-small": "MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[16,5]-OP[8]-MC[32,5]-S[4]-FC[64]",
    "oriented": "MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[32,5]-OP[24]-MC[64,5]-S[4]-FC[96]",
    "oriented-large": "MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[48,3]-OP[36,1]-MC[96,3]-S[4]-FC[128]",
    "pyramid-tiny": "MC[16,3]-R[12]-D-MC[32,3]-R[16]-D-MC[48,3]-R[24]-S[2]-FC[64]",
    "pyramid-small": "MC[16,3]-D-MC[24,3]-R[16]-D-MC[48,3]-R[24]-S[2]-FC[64]",
    "pyramid-small-224": "MC[16,3]-D-D-MC[24,3]-R[16]-D-MC[48,3]-R[24]-S[2]-FC[64]",
    "pyramid-medium": "LC[8,5]-GB[3]-D-GC[16,3]-GB[3]-D-GC[32,3]-GB[3]-MO[128]-S[0]",
    "pyramid": "LC[8,5]-GB[3]-D-GC[16,3]-GB[5]-GB[5]-D-GC[32,3]-GB[5]-GB[5]-D-GC[48,3]-GB[5]-MO[128]-S[0]",
    "pyramid-large": "LC[12,5]-GB[5]-GB[5]-D-GC[24,3]-GB[5]-GB[5]-D-GC[48,3]-GB[5]-GB[5]-MO[128]-S[0]",
    "pyramid-224": "LC[8,5]-D-GB[5]-D-GC[16,3]-GB[5]-GB[5]-D-GC[32,3]-GB[5]-GB[5]-MO[128]-S[0]",
}
"""Architectures with a name: the two networks of Table 1 (MNIST-012, other experiments), the oriented networks, and the
pyramids, which coarsen the image between their layers: three of residual products, which are trained in a minute on a
CPU, and four of group convolutions, which are more accurate. Of these, ``pyramid-medium`` is the fastest, and the
others are made for a GPU. Those with 224 are for images of 65 to about 224 pixels: their maps are coarsened earlier."""


@dataclass(frozen=True)
class Architecture(Notation):
    """A TIGraNet in the paper's notation.

    Graph layers come first, and start with a convolution:

    * on maps: the convolutions SC (the paper's) and MC, the products OP, MP and GP, the residual block R, and the
      pooling DP, in any order;
    * the lifting convolution LC leads from maps to features with orientations. On these work the group convolution GC
      and the residual block GB, until MO leads back to maps;
    * the coarsening D, anywhere after the first layer.

    Then come one statistics layer S and any number of fully-connected layers FC. The last fully-connected layer, with
    one output per class, is implicit (reading 11).

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

    FIRST = (SC, MC, LC)
    FOLLOW: ClassVar = {
        **dict.fromkeys((*MAP_LAYERS, MO), (*MAP_LAYERS, LC, D, S)),
        **dict.fromkeys((LC, GC, GB), (*ORIENTATION_LAYERS, D)),
        D: (*MAP_LAYERS, LC, *ORIENTATION_LAYERS, D, S),
        S: (FC,),
        FC: (FC,),
    }
    NEEDED = S
    ORDER = (
        "an architecture starts with SC, MC or LC. SC, MC, OP, MP, GP, R and DP work on maps; LC leads to features "
        "with orientations, on which GC and GB work until MO leads back to maps. D may come after any of them. Then "
        "comes one S, then FC layers"
    )
    PRESETS: ClassVar = PRESETS

    def __post_init__(self) -> None:
        super().__post_init__()
        has_orientations = False
        for number, layer in enumerate(self.layers, start=1):
            needs_orientations = isinstance(layer, ORIENTATION_LAYERS)
            if not isinstance(layer, D | FC) and needs_orientations != has_orientations:
                actual, remedy = ("features with orientations", "MO") if has_orientations else ("maps", "LC")
                raise ValueError(
                    f"{type(layer).__name__} does not work on {actual}, in layer {number} ('{layer}') of "
                    f"'{shorten(str(self))}': write {remedy} before it"
                )
            has_orientations = (has_orientations or isinstance(layer, LC)) and not isinstance(layer, MO)

    @property
    def has_group_convolutions(self) -> bool:
        """Whether the network has features with orientations."""
        return any(isinstance(layer, LC) for layer in self.layers)

    @property
    def num_coarsenings(self) -> int:
        """Number of times that height and width are halved."""
        return sum(isinstance(layer, D) for layer in self.layers)

    @property
    def has_mixed_convolutions(self) -> bool:
        """Whether the network has MC or R layers, as the oriented networks do."""
        return any(isinstance(layer, MC | R) for layer in self.layers)
