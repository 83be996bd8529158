"""The recipe of a training: optimiser settings, augmentation and stopping rule in one value."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from torch import nn

from tigranet.choices import Keep, Schedule

SMALL_NETWORK = 50_000
"""Number of parameters up to which a network counts as small: between the 8,563 of the paper's smaller network and the
441,970 of its larger one."""

MIXED_REGULARISATION = {"zoom": 0.2, "stretch": 0.15, "warp": 0.035, "as_is": 0.25, "smoothing": 0.05}
"""Augmentation and label smoothing for networks with mixed convolutions, which overfit without them."""

STEERABLE_SETTINGS = {
    "learning_rate": 2e-3,
    "weight_decay": 0.05,
    "dropout": 0.3,
    "smoothing": 0.1,
    "zoom": 0.2,
    "stretch": 0.15,
    "as_is": 0.25,
}
"""Optimiser settings, regularisation and augmentation for networks with group convolutions."""
STEERABLE_WARP = 0.035
"""Warp for networks with group convolutions and at most :data:`MANY_IMAGES` images."""
STEERABLE_CUTOUT = 0.25
"""Cutout for networks with group convolutions and more than :data:`MANY_IMAGES` images."""
PYRAMID_EPOCHS = (60, 40)
"""Least number of epochs for pyramids: up to :data:`VERY_MANY_IMAGES` images, and for more."""

MANY_IMAGES, VERY_MANY_IMAGES = 1_000, 10_000
"""Numbers of training images up to which the number of steps is fixed, and up to which batches are small."""

FEW_IMAGES = 200
"""Number of training images up to which their range of brightness is small, so that it is augmented too."""
FEW_IMAGES_TONE = 0.5
"""Strength of this augmentation."""

MAX_TONE = 5.0
"""Largest strength of the tone augmentation. It changes the brightness by a factor of up to 150."""

ADDED_FIELDS = frozenset(
    {"weight_decay", "shift", "flip", "tint", "blur", "cutout", "dropout", "average", "accumulate"}
)
"""Fields of :class:`Recipe` that version 0.1 does not have. With their default values they change nothing."""


def default_augmentation(count: int) -> dict[str, float]:
    """Return the regularisation of networks with mixed convolutions: stronger for fewer training images.

    Args:
        count: Number of training images.

    Returns:
        Fields of :class:`Recipe` by name.

    Example:
        >>> default_augmentation(50)["tone"], "tone" in default_augmentation(500)
        (0.5, False)
    """
    return MIXED_REGULARISATION | ({"warp": 0.05, "tone": FEW_IMAGES_TONE} if count <= FEW_IMAGES else {})


def steerable_defaults(count: int) -> dict[str, float]:
    """Return the learning rate, the regularisation and the augmentation of networks with group convolutions.

    Args:
        count: Number of training images.

    Returns:
        Fields of :class:`Recipe` by name.

    Example:
        >>> [sorted(steerable_defaults(count).keys() & {"tone", "warp", "cutout"}) for count in (50, 500, 5_000)]
        [['tone', 'warp'], ['warp'], ['cutout']]
    """
    tone = {"tone": FEW_IMAGES_TONE} if count <= FEW_IMAGES else {}
    change = {"warp": STEERABLE_WARP} if count <= MANY_IMAGES else {"cutout": STEERABLE_CUTOUT}
    return STEERABLE_SETTINGS | tone | change


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: Adam or AdamW on the cross-entropy, with a learning rate that falls to zero."""

    epochs: int
    """Number of passes over the training images."""
    batch_size: int = 50
    """Batch size, over all devices together."""
    learning_rate: float = 1e-2
    """Highest learning rate."""
    weight_decay: float = 0.0
    """Decoupled weight decay of AdamW: each step multiplies the weights by 1 minus this times the learning rate. Biases
    and normalisations do not decay. 0 trains with Adam."""
    schedule: Schedule = "one-cycle"
    """Learning-rate schedule: ``one-cycle`` rises and falls again, ``cosine`` falls along a cosine from the start."""
    jitter: float = 0.5
    """Maximum random shift of each training image along each axis, in pixels, at most 1."""
    shift: float = 0.0
    """Maximum random shift of each training image by whole pixels, as a fraction of the image size. The background
    enters, or the nearest border pixel."""
    flip: bool = False
    """Whether half of the training images are mirrored. Not for data in which a mirror image has another class, such as
    letters."""
    zoom: float = 0.0
    """Maximum random change of the scale of each training image, as a fraction of the image size."""
    stretch: float = 0.0
    """Maximum random stretch along a random axis, with the same compression across it, as a fraction of the image
    size."""
    warp: float = 0.0
    """Root mean square displacement by a random smooth deformation, as a fraction of the image size. See
    :func:`tigranet.data.augment.deform.deform`."""
    tone: float = 0.0
    """Strength of a random change of brightness and contrast. See :func:`tigranet.data.augment.photometric.tone`."""
    tint: float = 0.0
    """Maximum random change of the brightness of each channel. See :func:`tigranet.data.augment.photometric.tint`."""
    blur: float = 0.0
    """Maximum weight of a smoothed copy, which is blended with half of the images. See
    :func:`tigranet.data.augment.blur.blur`."""
    cutout: float = 0.0
    """Side length of a random square of each image that is replaced by the mean of the image, as a fraction of the
    image size. See :func:`tigranet.data.augment.cutout.cutout`."""
    as_is: float = 0.0
    """Fraction of the images of a batch that are not deformed when ``zoom``, ``stretch`` or ``warp`` is set.
    Deformation blurs images a little, and these show the network sharp ones."""
    smoothing: float = 0.0
    """Label smoothing: the fraction of each label that is spread over all classes."""
    dropout: float = 0.0
    """Probability with which a feature is set to zero before the classifier. The network must have an ``nn.Dropout`` as
    its attribute ``dropout``. 0 leaves the network as it is."""
    average: float = 0.0
    """Decay per step of an exponential moving average of the weights, which is validated and kept instead of the
    weights. 0 averages nothing. See :func:`tigranet.training.weight_averaging.decay_at`."""
    accumulate: int = 1
    """Number of parts of a batch that are computed one after the other, so that a batch takes less memory. Their
    gradients are added. Normalisations use the moments of a part, so the result is not that of the whole batch."""
    turned: bool = False
    """Whether each training image is rotated by a random angle. Networks that are not invariant need it."""
    balanced: bool = False
    """Whether all classes have the same weight in the loss, regardless of their number of images."""
    keep: Keep = "last"
    """Which weights to keep: those of the ``last`` step, or the ``best`` ones, of the lowest validation loss."""
    patience: int | None = None
    """Stop early when the validation loss has not fallen for this many epochs, and keep the best weights. None trains
    for all epochs."""
    seed: int = 0
    """Seed of the order of the images and of the augmentation."""

    @classmethod
    def for_images(
        cls,
        count: int,
        parameters: int = 0,
        mixed: bool = False,
        steerable: bool = False,
        coarsens: bool = False,
        **overrides: Any,
    ) -> "Recipe":
        """Return the default recipe for a number of training images and a size of network.

        The number of steps, the number of epochs and the learning rate were selected on validation images;
        ``results/README.md`` describes how:

        * Up to 1,000 images, training takes about 1,200 steps. With 1,000 images, a third of these steps loses 2 to 11
          points of accuracy. With more images the number of epochs is fixed: 60, or 20 above 10,000 images.
        * Networks of more than :data:`SMALL_NETWORK` parameters have a lower learning rate.
        * Networks with mixed convolutions, the oriented ones, learn in a third of the steps, at the lower rate, from
          images that are deformed but never rotated, because they overfit otherwise. See :func:`default_augmentation`.
        * Networks with group convolutions, the steerable ones, take as many steps as these, and are regularised more
          strongly. See :func:`steerable_defaults`.
        * Pyramids, which are the networks with coarsenings or group convolutions, are trained for at least
          :data:`PYRAMID_EPOCHS`. With 1,000 images of 121 classes, a third of these epochs loses 5 points.

        Args:
            count: Number of training images.
            parameters: Number of parameters of the network.
            mixed: Whether the network has mixed convolutions.
            steerable: Whether the network has group convolutions. They take precedence over mixed convolutions.
            coarsens: Whether the network halves height and width between its layers.
            **overrides: Fields of the recipe that replace the defaults.

        Returns:
            The recipe.
        """
        batch_size = 50 if count <= VERY_MANY_IMAGES else 250
        steps = 400 if mixed or steerable else 1_200
        epochs_of_many = steps // 20 if count <= VERY_MANY_IMAGES else 24 if mixed or steerable else 20
        epochs = -(-50 * steps // max(count, 50)) if count <= MANY_IMAGES else epochs_of_many
        if steerable or coarsens:
            epochs = max(epochs, PYRAMID_EPOCHS[count > VERY_MANY_IMAGES])
        learning_rate = 1e-2 if parameters <= SMALL_NETWORK and not mixed else 3e-3
        defaults: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
        regularisation = steerable_defaults(count) if steerable else default_augmentation(count) if mixed else {}
        return cls(**(defaults | regularisation | overrides))

    @classmethod
    def for_network(cls, module: nn.Module, count: int, **overrides: Any) -> "Recipe":
        """Return the default recipe for a network: :meth:`for_images` with the properties of ``module``.

        Args:
            module: The network. If it has the attributes ``architecture.has_mixed_convolutions``,
                ``architecture.has_group_convolutions`` and ``architecture.num_coarsenings``, these are used.
            count: Number of training images.
            **overrides: Fields of the recipe that replace the defaults.

        Returns:
            The recipe.
        """
        architecture = getattr(module, "architecture", None)
        return cls.for_images(
            count,
            sum(parameter.numel() for parameter in module.parameters()),
            mixed=getattr(architecture, "has_mixed_convolutions", False),
            steerable=getattr(architecture, "has_group_convolutions", False),
            coarsens=getattr(architecture, "num_coarsenings", 0) > 0,
            **overrides,
        )

    def shortened(self, share: float) -> "Recipe":
        """Return this recipe with a share of its epochs, at least one.

        Args:
            share: The share.

        Returns:
            The recipe.

        Example:
            >>> Recipe(epochs=67).shortened(0.5).epochs
            34
        """
        return replace(self, epochs=max(1, round(share * self.epochs)))

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
            if value is not None and value != int(value):
                raise ValueError(f"{name} must be an integer, got {value}")
        if self.accumulate > self.batch_size:
            raise ValueError(f"accumulate must be at most batch_size = {self.batch_size}, got {self.accumulate}")
        for name, choices in (("schedule", get_args(Schedule)), ("keep", get_args(Keep))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be '{choices[0]}' or '{choices[1]}', got {getattr(self, name)!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be a number of pixels in [0, 1], got {self.jitter}")
        if not 0 <= self.weight_decay * self.learning_rate < 1:
            raise ValueError(
                f"weight_decay must be at least 0 and below 1 / learning_rate = {1 / self.learning_rate:g}, "
                f"got {self.weight_decay}"
            )
        for name in ("shift", "zoom", "stretch", "warp", "cutout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be a fraction of the image size in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.tone <= MAX_TONE:
            raise ValueError(f"tone must be a strength in [0, {MAX_TONE:g}], got {self.tone}")
        for name, meaning in (("tint", "a change of brightness"), ("blur", "the weight of a smoothed image")):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be {meaning} in [0, 1], got {getattr(self, name)}")
        for name, meaning in (("dropout", "a probability"), ("average", "a decay per step")):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be {meaning} in [0, 1), got {getattr(self, name)}")
        for name, whole in (("smoothing", "each label"), ("as_is", "the images")):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be a fraction of {whole} in [0, 1), got {getattr(self, name)}")

    @property
    def deformed(self) -> bool:
        """Whether training images are deformed, in addition to being shifted."""
        return bool(self.zoom or self.stretch or self.warp)

    @property
    def check_every(self) -> int:
        """Number of epochs between validations, and between checkpoints: such that there are 20 to 40 in total."""
        return max(1, self.epochs // 20)

    def __str__(self) -> str:
        """Return the numbers that are not zero, and the other fields that differ from their defaults."""
        parts = []
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.replace("_", " ")
            if name == "accumulate" and value == field.default:
                continue
            if isinstance(value, float | int) and not isinstance(value, bool) and (value or name in ("jitter", "seed")):
                parts.append(f"{name} {value:g}")
            elif value != field.default:
                parts.append(name if value is True else f"{name} {value}")
        return ", ".join(parts)
