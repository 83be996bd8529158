"""The TIGraNet: an architecture, applied to the pixel grid of the image or to any graph."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.architecture import DP, LC, MAX_MAPS, Architecture, D, S
from tigranet.choices import Window
from tigranet.graph_layer import Maps, build_graph_layer
from tigranet.graphs.grid import ISOTROPIC, Boundary, GridLaplacian, Neighbours, check_grid_options
from tigranet.graphs.grid_cache import GridCache
from tigranet.graphs.laplacian import Laplacian
from tigranet.inference_precision import InferenceInHalfPrecision
from tigranet.layers.background_margin import add_margin
from tigranet.layers.disc_window import window_images, window_maps
from tigranet.layers.dynamic_pool import Ties
from tigranet.layers.standardise import Standardise
from tigranet.layers.statistics import Statistics
from tigranet.model_limits import (
    MAX_CLASSES,
    MAX_IMAGE_SIZE,
    MAX_MARGIN,
    check_choice,
    check_class_names,
    check_integer,
    check_model_size,
    check_number,
)
from tigranet.notation import FC
from tigranet.pretrained import Pretrained
from tigranet.timm_interface import TimmInterface, initialise_as_in_the_paper, number_of_channels

T = TypeVar("T", bound="TIGraNet")

Init = Literal["default", "paper"]
"""How the fully-connected layers are initialised."""


class TIGraNet(Pretrained, TimmInterface, InferenceInHalfPrecision):
    r"""The network of Khasanova & Frossard, "Graph-based Isometry Invariant Representation Learning" (ICML 2017).

    Spectral convolutions and dynamic poolings alternate. Then come statistics that do not change when the image is
    rotated or shifted, and fully-connected layers with ReLU between them (reading 11).

    Two families extend the paper. In the oriented networks, products of gradients between the convolutions measure how
    strokes are oriented relative to each other. In the pyramids, features have orientations that rotate with the
    image, and a coarsening between the layers halves height and width, for larger images.

    The weights do not depend on the number of pixels. One network works on images of any size, and on any graph if the
    graph's ``laplacian`` is passed together with the signals.

    Args:
        architecture: Layers in the paper's notation, the name of a preset (``paper-small``, ``paper``,
            ``oriented-small``, ``oriented``, ``oriented-large``, ``pyramid-tiny``, ``pyramid-small``,
            ``pyramid-medium``, ``pyramid``, ``pyramid-large``), or an :class:`Architecture`.
        num_classes: Number of classes, at most 100,000. The last layer, with one output per class, is implicit.
        in_maps: Number of channels of the images, at most 10,000.
        boundary: ``free`` is the paper's grid. On the ``torus`` integer shifts are exact symmetries too.
        neighbours: Number of neighbours of a pixel: 8 as in the paper, or 4.
        diagonal: Weight of the edges to the 4 diagonal neighbours. The default is 1 as in the paper, and
            :data:`ISOTROPIC` for networks with MC layers.
        ties: How the pooling treats equal values, see :class:`DynamicPool`.
        init: ``paper`` draws all fully-connected parameters uniformly from [-1, 1], which trains badly. ``default``
            standardises the statistics and uses PyTorch's initialisation (reading 12). Both use the same filters.
        span: End of the part of the spectrum that the initial filters cover, see :func:`filter_bank`.
        window: ``disc`` shows the network a smooth disc of each image, which a rotation maps onto itself, and sets
            the maps of all layers to zero outside it. It is meant for images that fill their frame. Signals on a graph
            that is passed with them have no frame, and are not changed.
        margin: Number of pixels of background that are added to each side of an image, after the window (see
            :func:`~tigranet.layers.background_margin.add_margin`). On a free grid, shifts of an object on a plain
            background are exact as long as its distance from the border is larger than the reach of the filters; a
            margin adds to this distance.
        class_names: Names of the classes, which must differ. The network does not use them, but saves them with the
            weights.
        image_size: Side length of the training images in pixels. The network does not use it, but saves it with the
            weights.
        in_channels: Another name of ``in_maps``.
        in_chans: Another name of ``in_maps``.

    Attributes:
        architecture: The parsed architecture.
        config: The constructor's arguments as JSON values, as saved in config.json.
        standardise_images: Standardisation of each channel over all images, in networks that start with LC, else the
            identity. Without it, the constant part of bright images would exceed what varies by far.
        graph_layers: One module per graph layer.
        statistics: The layer that computes the invariant features.
        num_features: Number of invariant features.
        standardise: Standardisation of the features, or the identity with ``init="paper"``.
        dropout: Dropout of the standardised features, off unless a training sets its probability.
        classifier: The fully-connected layers.

    Raises:
        ValueError: If an argument has an invalid value, or if the network would have more than 2**31 parameters.
        TypeError: If an argument has a wrong type.

    Example:
        >>> import torch
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
        init: Init = "default",
        span: float = 2.0,
        window: Window = "none",
        margin: int = 0,
        class_names: Sequence[str] | None = None,
        image_size: int | None = None,
        in_channels: int | None = None,
        in_chans: int | None = None,
    ) -> None:
        super().__init__()
        if isinstance(architecture, str):
            architecture = Architecture.parse(architecture)
        if not isinstance(architecture, Architecture):
            raise TypeError(f"expected architecture to be a string or an Architecture, got {type(architecture)}")
        num_classes = check_integer("num_classes", num_classes, MAX_CLASSES)
        in_maps = check_integer("in_maps", number_of_channels(in_maps, in_channels, in_chans), MAX_MAPS)
        check_model_size(architecture, num_classes, in_maps)
        names = check_class_names(class_names, num_classes)
        if image_size is not None:
            image_size = check_integer("image_size", image_size, MAX_IMAGE_SIZE)
        if diagonal is None:
            diagonal = ISOTROPIC if architecture.has_mixed_convolutions else 1.0
        diagonal, span = check_number("diagonal", diagonal), check_number("span", span)
        check_grid_options(neighbours, boundary, diagonal)
        check_integer("neighbours", neighbours, 8)
        if not 0 < span <= 2:
            raise ValueError(f"expected span to be in (0, 2], got {span}")
        check_choice("ties", ties, Ties)
        check_choice("init", init, Init)
        check_choice("window", window, Window)
        margin = check_integer("margin", margin, MAX_MARGIN, minimum=0)
        self.config: dict[str, Any] = {
            "architecture": str(architecture),
            "num_classes": num_classes,
            "in_maps": in_maps,
            "boundary": boundary,
            "neighbours": neighbours,
            "diagonal": diagonal,
            "ties": ties,
            "init": init,
            "span": span,
            "window": window,
            "margin": margin,
            "class_names": names,
            "image_size": image_size,
        }
        self.architecture, self.num_classes, self.in_maps = architecture, num_classes, in_maps
        self.boundary, self.neighbours, self.diagonal = boundary, neighbours, diagonal
        self.window, self.margin = window, margin
        self.class_names = tuple(names or map(str, range(num_classes)))
        self.image_size = image_size
        self._grids = GridCache(neighbours, boundary, diagonal)
        starts_with_features = isinstance(architecture.layers[0], LC)
        self.standardise_images = Standardise(in_maps, eps=1e-5) if starts_with_features else nn.Identity()
        self.graph_layers = nn.ModuleList()
        classifier: list[nn.Module] = []
        width, orientations = in_maps, 1
        for layer in architecture.layers:
            match layer:
                case S(order):
                    self.statistics = Statistics(order)
                    self.num_features = width = 2 * (order + 1) * width
                    self.standardise = _standardise(width, architecture) if init == "default" else nn.Identity()
                case FC(units):
                    classifier += [nn.Linear(width, units), nn.ReLU()]
                    width = units
                case _:
                    orientations = layer.orientations if isinstance(layer, LC) else orientations
                    self.graph_layers.append(module := build_graph_layer(layer, width, orientations, span, ties))
                    width = getattr(module, "out_maps", width)  # Pooling does not change the number of maps.
        self.dropout = nn.Dropout(0.0)
        self.classifier = nn.Sequential(*classifier, nn.Linear(width, num_classes))
        if init == "paper":
            initialise_as_in_the_paper(self.classifier)

    @classmethod
    def from_pretrained(cls: type[T], pretrained_model_name_or_path: str | Path, **kwargs: Any) -> T:
        """Load a network in evaluation mode, if necessary with a new last layer for another number of classes.

        Args:
            pretrained_model_name_or_path: A folder, the name of a shipped network (see
                :func:`tigranet.pretrained.shipped`), or ``owner/name`` of a model on the Hugging Face Hub.
            **kwargs: Options of :meth:`tigranet.pretrained.Pretrained.from_pretrained`, and arguments of the
                constructor that replace those of the configuration. If ``num_classes`` is another number than that of
                the saved network, the last layer is replaced, see :meth:`with_classes`; ``class_names`` then name the
                new classes.

        Returns:
            The network.

        Raises:
            FileNotFoundError: If there is no model of this name, or if one of its files is missing.
            ValueError: If a file is damaged, if the files do not belong together, or if an argument is not valid.

        Example:
            >>> TIGraNet.from_pretrained("paper-mnist-012", num_classes=5).num_classes
            5
        """
        num_classes = kwargs.pop("num_classes", None)
        if num_classes is None:
            return super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        class_names = kwargs.pop("class_names", None)
        network = super().from_pretrained(pretrained_model_name_or_path, **kwargs)
        if num_classes != network.num_classes:
            return network.with_classes(num_classes, class_names)
        return network if class_names is None else network.with_classes(num_classes, class_names)

    def with_classes(
        self: T, num_classes: int, class_names: Sequence[str] | None = None, image_size: int | None = None
    ) -> T:
        """Return a copy of the network for other classes, from which a training can start.

        All layers are copied except the last. Classes that have the same name in both networks keep their weights of
        the last layer; those of all other classes are drawn at random, as for a new network.

        Args:
            num_classes: Number of classes.
            class_names: Their names. Without names all classes are new.
            image_size: Side length of the images of the new training, if it is another one.

        Returns:
            The new network, with the dtype, the device and the mode (training or evaluation) of this one.

        Raises:
            ValueError: If the names do not fit the number, or if two are the same.
            TypeError: If an argument has a wrong type.

        Example:
            >>> network = TIGraNet("SC[2,2]-S[2]", 2, class_names=["cat", "dog"])
            >>> network.with_classes(3, ["bird", "cat", "dog"]).class_names
            ('bird', 'cat', 'dog')
        """
        names = None if class_names is None else list(class_names)
        image_size = self.image_size if image_size is None else image_size
        network = type(self)(
            **self.config | {"num_classes": num_classes, "class_names": names, "image_size": image_size}
        )
        head, new_head = self.classifier[-1], network.classifier[-1]
        assert isinstance(head, nn.Linear)
        assert isinstance(new_head, nn.Linear)
        network.to(head.weight.device, head.weight.dtype)
        last = f"classifier.{len(self.classifier) - 1}."
        state = {name: tensor for name, tensor in self.state_dict().items() if not name.startswith(last)}
        network.load_state_dict(state, strict=False)
        known = {} if self.config["class_names"] is None else {name: row for row, name in enumerate(self.class_names)}
        with torch.no_grad():
            for row, name in enumerate(names or ()):
                if name in known:
                    new_head.weight[row] = head.weight[known[name]]
                    new_head.bias[row] = head.bias[known[name]]
        return network.train(self.training)

    def forward(
        self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None
    ) -> Float[Tensor, "batch classes"]:
        """Compute the logits of images, or of signals on a graph.

        Args:
            images: Images with values in [0, 1]. If ``laplacian`` is given, signals on its graph.
            laplacian: The graph of the signals. The default is the pixel grid of the images.

        Returns:
            One logit per class.

        Raises:
            ValueError: If the shape of ``images`` does not fit.
            TypeError: If ``images`` does not have the dtype of the network.

        Shape:
            ``(batch, in_maps, height, width) -> (batch, classes)``, or
            ``(batch, in_maps, nodes) -> (batch, classes)`` with ``laplacian``.
        """
        return self.forward_head(self.features(images, laplacian))

    def features(
        self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None
    ) -> Float[Tensor, "batch statistics"]:
        """Compute the invariant statistics phi, which can be the input of any other classifier.

        Args:
            images: Images or signals, as for :meth:`forward`.
            laplacian: The graph of the signals, as for :meth:`forward`.

        Returns:
            The statistics: two numbers per map and Chebyshev order.

        Raises:
            ValueError: If the shape of ``images`` does not fit.
            TypeError: If ``images`` does not have the dtype of the network.

        Shape:
            ``(batch, in_maps, height, width) -> (batch, 2 * maps * (order + 1))``
        """
        if laplacian is None:
            images = self._exactly_rotated(images)
        for maps in self._graph_layer_outputs(*self._to_signals(images, laplacian)):
            last = maps  # The maps of earlier layers are not kept.
        return self.statistics(last.z, last.laplacian, last.active)

    def maps(self, images: Float[Tensor, "batch in_maps *pixels"], laplacian: Laplacian | None = None) -> list[Maps]:
        """Compute the output of every graph layer, to look at.

        Args:
            images: Images or signals, as for :meth:`forward`.
            laplacian: The graph of the signals, as for :meth:`forward`.

        Returns:
            One entry per graph layer.

        Raises:
            ValueError: If the shape of ``images`` does not fit.
            TypeError: If ``images`` does not have the dtype of the network.
        """
        return list(self._graph_layer_outputs(*self._to_signals(images, laplacian)))

    def _graph_layer_outputs(
        self, z: Float[Tensor, "batch maps nodes"], laplacian: Laplacian, has_frame: bool
    ) -> Iterator[Maps]:
        """Apply the graph layers one after the other and yield the output of each."""
        windowed = has_frame and self.window == "disc"
        z, active, omega = self.standardise_images(z), None, None
        for layer, module in zip(self.architecture.layers, self.graph_layers, strict=False):
            with self._inference_precision(z.device):
                match layer:
                    case DP():
                        active = module(z, omega)
                        omega = active.any(dim=1, keepdim=True)
                    case D():
                        z, active = module(z, laplacian), None
                        omega = None if omega is None else laplacian.coarsening.nodes(omega)
                        laplacian = laplacian.coarsening.laplacian
                    case _:
                        z, active = module(z, laplacian, omega), None
                        if windowed and isinstance(laplacian, GridLaplacian):
                            z = window_maps(z, laplacian.height, laplacian.width)
            yield Maps(layer, z, active, omega, laplacian)

    def _to_signals(self, images: Tensor, laplacian: Laplacian | None) -> tuple[Tensor, Laplacian, bool]:
        """Check the input, and return it as signals with their graph, and whether they are images with a frame."""
        axes = ("height", "width") if laplacian is None else ("nodes",)
        if images.ndim != 2 + len(axes) or images.shape[1] != self.in_maps:
            expected = ", ".join(("batch", str(self.in_maps), *axes))
            raise ValueError(f"expected input of shape ({expected}), got shape {tuple(images.shape)}")
        if not images.is_floating_point():
            raise TypeError(f"expected images in floating point in [0, 1], got {images.dtype}: use .float() / 255")
        if images.dtype != (dtype := next(self.parameters()).dtype):
            raise TypeError(
                f"expected images in {dtype} as the network's weights, got {images.dtype}: convert one to the other"
            )
        if laplacian is not None:
            return images, laplacian, False
        if self.window == "disc":
            images = window_images(images)
        if self.margin and 0 not in images.shape[2:]:  # an empty image is an error of the grid
            images = add_margin(images, self.margin)
        return images.flatten(2), self._grids.get(*images.shape[2:]), True

    def extra_repr(self) -> str:
        """Describe the network in the first line of its ``repr``."""
        sizes = f"num_classes={self.num_classes}, in_maps={self.in_maps}"
        return f"'{self.architecture}', {sizes}, boundary={self.boundary!r}"


def _standardise(num_statistics: int, architecture: Architecture) -> Standardise:
    """Build the standardisation of the statistics.

    After an orientation maximum, maps have a variance of about 1. A statistic of such maps that hardly varies, because
    few images activate it, would grow without bound if it were divided by its own small deviation.
    """
    return Standardise(num_statistics, eps=1e-5) if architecture.has_group_convolutions else Standardise(num_statistics)
