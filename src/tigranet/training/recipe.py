"""The recipe of a training: optimiser settings, augmentation and stopping rule in one value."""

import math
from dataclasses import dataclass, fields
from typing import Any, get_args

from torch import nn

from tigranet.choices import Keep, Schedule

SMALL_NETWORK = 50_000
"""Number of parameters up to which a network counts as small: between the 8,563 of the paper's smaller network and the
441,970 of its larger one."""

MIXED_REGULARISATION = {"zoom": 0.2, "stretch": 0.15, "warp": 0.035, "as_is": 0.25, "smoothing": 0.05}
"""Augmentation and label smoothing for networks with mixed convolutions, which overfit without them."""

FEW_IMAGES = 200
"""Number of training images up to which their range of brightness is small, so that it is augmented too."""

MAX_TONE = 5.0
"""Largest strength of the tone augmentation. It changes the brightness by a factor of up to 150."""


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
    return MIXED_REGULARISATION | ({"warp": 0.05, "tone": 0.5} if count <= FEW_IMAGES else {})


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: Adam on the cross-entropy, with a learning rate that falls to zero."""

    epochs: int
    """Number of passes over the training images."""
    batch_size: int = 50
    """Batch size."""
    learning_rate: float = 1e-2
    """Highest learning rate."""
    schedule: Schedule = "one-cycle"
    """Learning-rate schedule: ``one-cycle`` rises and falls again, ``cosine`` falls along a cosine from the start."""
    jitter: float = 0.5
    """Maximum random shift of each training image along each axis, in pixels, at most 1."""
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
    as_is: float = 0.0
    """Fraction of the images of a batch that are not deformed when ``zoom``, ``stretch`` or ``warp`` is set.
    Deformation blurs images a little, and these show the network sharp ones."""
    smoothing: float = 0.0
    """Label smoothing: the fraction of each label that is spread over all classes."""
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
    def for_images(cls, count: int, parameters: int = 0, mixed: bool = False, **overrides: Any) -> "Recipe":
        """Return the default recipe for a number of training images and a size of network.

        The number of steps, the number of epochs and the learning rate were selected on validation images;
        ``results/README.md`` describes how:

        * Up to 1,000 images, training takes about 1,200 steps. With 1,000 images, a third of these steps loses 2 to 11
          points of accuracy. With more images the number of epochs is fixed: 60, or 20 above 10,000 images.
        * Networks of more than :data:`SMALL_NETWORK` parameters have a lower learning rate.
        * Networks with mixed convolutions, the oriented ones, learn in a third of the steps, at the lower rate, from
          images that are deformed but never rotated, because they overfit otherwise. See :func:`default_augmentation`.

        Args:
            count: Number of training images.
            parameters: Number of parameters of the network.
            mixed: Whether the network has mixed convolutions.
            **overrides: Fields of the recipe that replace the defaults.

        Returns:
            The recipe.
        """
        batch_size = 50 if count <= 10_000 else 250
        steps = 400 if mixed else 1_200
        epochs_of_many = steps // 20 if count <= 10_000 else 24 if mixed else 20
        epochs = -(-50 * steps // max(count, 50)) if count <= 1_000 else epochs_of_many
        learning_rate = 1e-2 if parameters <= SMALL_NETWORK and not mixed else 3e-3
        defaults: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
        return cls(**(defaults | (default_augmentation(count) if mixed else {}) | overrides))

    @classmethod
    def for_network(cls, module: nn.Module, count: int, **overrides: Any) -> "Recipe":
        """Return the default recipe for a network: :meth:`for_images` with the properties of ``module``.

        Args:
            module: The network. If it has an attribute ``architecture.has_mixed_convolutions``, that is used.
            count: Number of training images.
            **overrides: Fields of the recipe that replace the defaults.

        Returns:
            The recipe.
        """
        mixed = getattr(getattr(module, "architecture", None), "has_mixed_convolutions", False)
        return cls.for_images(count, sum(parameter.numel() for parameter in module.parameters()), mixed, **overrides)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
            if value is not None and value != int(value):
                raise ValueError(f"{name} must be an integer, got {value}")
        for name, choices in (("schedule", get_args(Schedule)), ("keep", get_args(Keep))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be '{choices[0]}' or '{choices[1]}', got {getattr(self, name)!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be a number of pixels in [0, 1], got {self.jitter}")
        for name in ("zoom", "stretch", "warp"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be a fraction of the image size in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.tone <= MAX_TONE:
            raise ValueError(f"tone must be a strength in [0, {MAX_TONE:g}], got {self.tone}")
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
            if isinstance(value, float | int) and not isinstance(value, bool) and (value or name in ("jitter", "seed")):
                parts.append(f"{name} {value:g}")
            elif value != field.default:
                parts.append(name if value is True else f"{name} {value}")
        return ", ".join(parts)
