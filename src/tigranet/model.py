"""TIGraNet: an architecture walked over the graph of the image it is given."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tigranet.architecture import DP, GP, MC, MP, OP, SC, Architecture, S
from tigranet.graphs.grid import ISOTROPIC, Boundary, GridLaplacian, Neighbours
from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.dynamic_pool import DynamicPool, Ties
from tigranet.layers.gradient_product import GradientProduct
from tigranet.layers.mirror_product import MirrorProduct
from tigranet.layers.mixed_conv import MixedConv
from tigranet.layers.oriented_product import OrientedProduct
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.layers.standardise import Standardise
from tigranet.layers.statistics import Statistics
from tigranet.notation import FC, Layer
from tigranet.pretrained import Pretrained


class Maps(NamedTuple):
    """What one graph layer leaves to the next."""

    layer: Layer
    z: Float[Tensor, "batch maps nodes"]
    active: Bool[Tensor, "batch maps nodes"] | None
    """After a pooling layer, the active nodes N_i of each map."""
    omega: Bool[Tensor, "batch 1 nodes"] | None
    """The nodes of interest; None while they are all nodes."""


class TIGraNet(Pretrained, nn.Module):
    r"""The network of Khasanova & Frossard, "Graph-based Isometry Invariant Representation Learning"
    (ICML 2017): alternating spectral convolutions and dynamic poolings, then statistics that do not change
    when the image is turned or shifted, then fully-connected layers with ReLU between them (reading 11). And beyond the
    paper the oriented networks, of the same family: products of gradients between convolutions see how strokes lie
    to each other.

    Weights do not depend on the number of pixels: one network runs on images of any size, and on any graph
    if its ``laplacian`` is given along with the signals.

    Args:
        architecture: the paper's notation, a preset (``paper-small``, ``paper``, ``oriented-small``, ``oriented``,
            ``oriented-large``), or a parsed value.
        num_classes: the number of classes; the last layer, to them, is implicit.
        in_maps: channels of the images.
        boundary: ``free`` is the paper's grid; on the ``torus`` integer shifts are exact symmetries too.
        neighbours: 8 as in the paper, or 4.
        diagonal: weight of the edges to the 4 diagonal neighbours. The paper's is 1; networks with MC layers have
            :data:`ISOTROPIC` unless told.
        ties: how the pooling treats equal values, see :class:`DynamicPool`.
        init: ``paper`` starts all fully-connected parameters uniformly in [-1, 1], which trains badly; ``default``
            standardises the statistics and starts as PyTorch does (reading 12). The filters start alike.
        span: where the starting filters end on the spectrum, see :func:`filter_bank`.
        class_names, image_size: for whoever reads files: names of the classes, and the square that images had.

    >>> net = TIGraNet("paper-small", num_classes=3).eval()
    >>> net(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    >>> net.features(torch.rand(2, 1, 50, 37)).shape
    torch.Size([2, 132])
    """

    def __init__(
        self,
        architecture: str | Architecture,
        num_classes: int,
        in_maps: int = 1,
        *,
        boundary: Boundary = "free",
        neighbours: Neighbours = 8,
        diagonal: float | None = None,
        ties: Ties = "keep",
        init: Literal["default", "paper"] = "default",
        span: float = 2.0,
        class_names: Sequence[str] | None = None,
        image_size: int | None = None,
    ) -> None:
        config = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        if isinstance(architecture, str):
            architecture = Architecture.parse(architecture)
        if num_classes < 1 or in_maps < 1:
            raise ValueError(f"num_classes and in_maps are at least 1, got {num_classes} and {in_maps}")
        if class_names is not None and len(class_names) != num_classes:
            raise ValueError(f"one name a class, got {len(class_names)} names for {num_classes} classes")
        if init not in ("default", "paper"):
            raise ValueError(f"init is 'default' or 'paper', got {init!r}")
        if diagonal is None:
            diagonal = ISOTROPIC if architecture.mixed else 1.0
        GridLaplacian(3, 3, neighbours, boundary, diagonal), DynamicPool(1, ties)  # they say what is wrong, if anything
        self.architecture, self.num_classes, self.in_maps = architecture, num_classes, in_maps
        self.boundary, self.neighbours, self.diagonal = boundary, neighbours, diagonal
        self.class_names = tuple(class_names or map(str, range(num_classes)))
        self.image_size = image_size
        self.config = config | {"architecture": str(architecture), "diagonal": diagonal}
        self.config["class_names"] = class_names and list(class_names)
        self._graphs: dict[tuple[int, int], GridLaplacian] = {}
        self.graph_layers = nn.ModuleList()
        classifier: list[nn.Module] = []
        width = in_maps
        for layer in architecture.layers:
            match layer:
                case S(order):
                    self.statistics = Statistics(order)
                    width *= 2 * (order + 1)
                    self.standardise = Standardise(width) if init == "default" else nn.Identity()
                case FC(units):
                    classifier += [nn.Linear(width, units), nn.ReLU()]
                    width = units
                case _:
                    self.graph_layers.append(module := _graph_layer(layer, width, span, ties))
                    width = getattr(module, "out_maps", width)  # pooling leaves the maps as they are
        self.classifier = nn.Sequential(*classifier, nn.Linear(width, num_classes))
        if init == "paper":
            for parameter in self.classifier.parameters():
                nn.init.uniform_(parameter, -1, 1)

    def forward(
        self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None
    ) -> Float[Tensor, "batch classes"]:
        """Logits of ``images`` (batch, in_maps, H, W), or of signals (batch, in_maps, nodes) on ``laplacian``."""
        return self.classifier(self.standardise(self.features(images, laplacian)))

    def features(
        self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None
    ) -> Float[Tensor, "batch statistics"]:
        """The invariant statistics phi, for any other classifier."""
        y, laplacian = self._as_signals(images, laplacian)
        for _, z, active, _ in self._walk(y, laplacian):  # noqa: B007 - the last ones are wanted
            pass
        return self.statistics(z, laplacian, active)

    def maps(self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None) -> list[Maps]:
        """What each graph layer answers, to look at."""
        return list(self._walk(*self._as_signals(images, laplacian)))

    def _walk(self, z: Float[Tensor, "batch maps nodes"], laplacian: Laplacian) -> Iterator[Maps]:
        active = omega = None
        for layer, module in zip(self.architecture.layers, self.graph_layers, strict=False):
            match layer:
                case DP():
                    active = module(z, omega)
                    omega = active.any(dim=1, keepdim=True)
                case _:
                    z, active = module(z, laplacian, omega), None
            yield Maps(layer, z, active, omega)

    def _as_signals(self, images: Tensor, laplacian: Laplacian | None) -> tuple[Tensor, Laplacian]:
        wanted = f"(batch, {self.in_maps}, height, width)" if laplacian is None else f"(batch, {self.in_maps}, nodes)"
        if images.ndim != (4 if laplacian is None else 3) or images.shape[1] != self.in_maps:
            raise ValueError(f"this network reads {wanted}, got shape {tuple(images.shape)}")
        if not images.is_floating_point():
            raise TypeError(f"images are floating point in [0, 1], got {images.dtype}: use .float() / 255")
        if images.dtype != (dtype := next(self.parameters()).dtype):
            raise TypeError(f"this network computes in {dtype}, got images in {images.dtype}: convert one to the other")
        return images.flatten(2), laplacian or self._graph(*images.shape[2:])

    def _graph(self, height: int, width: int) -> GridLaplacian:
        """The grid of that size, made once; while a compiler is tracing, not kept."""
        graph = self._graphs.get((height, width))
        graph = graph or GridLaplacian(height, width, self.neighbours, self.boundary, self.diagonal)
        if not torch.compiler.is_compiling():
            self._graphs[height, width] = graph
        return graph

    def extra_repr(self) -> str:
        channels = f"num_classes={self.num_classes}, in_maps={self.in_maps}"
        return f"'{self.architecture}', {channels}, boundary={self.boundary!r}"


def _graph_layer(layer: Layer, in_maps: int, span: float, ties: Ties) -> nn.Module:
    """The module that a layer of the notation stands for."""
    match layer:
        case SC(maps, degree):
            return SpectralConv(in_maps, maps, degree, span)
        case MC(maps, degree):
            return MixedConv(in_maps, maps, degree)
        case OP(pairs, smoothings):
            return OrientedProduct(in_maps, pairs, smoothings)
        case MP(pairs, smoothings):
            return MirrorProduct(in_maps, pairs, smoothings)
        case GP(pairs, smoothings):
            return GradientProduct(in_maps, pairs, smoothings)
        case DP(num_active):
            return DynamicPool(num_active, ties)
    raise TypeError(f"no module stands for {layer!r}")
