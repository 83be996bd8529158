"""How a network is trained, as a value."""

import math
from dataclasses import dataclass, fields
from typing import Any, get_args

from torch import nn

from tigranet.choices import Keep, Schedule

SMALL_NETWORK = 50_000
"""Parameters; between the 8,563 of the paper's smaller network and the 441,970 of its larger one."""

DEFORMED = {"zoom": 0.2, "stretch": 0.15, "warp": 0.035, "as_is": 0.25, "smoothing": 0.05}
"""What keeps a network of many mixed maps from learning its images by heart."""

VERY_FEW = 200
"""Training images; with so few of them, in how many shades they come is left to chance."""

BRIGHTEST = 5.0
"""The largest strength of tones: by then an image is 150 times as light, or black."""


def not_by_heart(count: int) -> dict[str, float]:
    """What is done to ``count`` training images and their labels: the fewer, the more.

    >>> not_by_heart(50)["tone"], "tone" in not_by_heart(500)
    (0.5, False)
    """
    return DEFORMED | ({"warp": 0.05, "tone": 0.5} if count <= VERY_FEW else {})


@dataclass(frozen=True)
class Recipe:
    """Adam on cross-entropy, with a rate that falls to zero."""

    epochs: int
    batch_size: int = 50
    learning_rate: float = 1e-2
    """The highest rate."""
    schedule: Schedule = "one-cycle"
    """How the rate goes: up and down again, or down along a cosine from the start."""
    jitter: float = 0.5
    """Each image of a batch is shifted by at most this part of a pixel along each axis; 0 for none."""
    zoom: float = 0.0
    """Each image of a batch is enlarged or shrunk by at most this part of its size; 0 for none."""
    stretch: float = 0.0
    """It is drawn out along a random axis, and pressed together across it, by at most this part; 0 for none."""
    warp: float = 0.0
    """Its pixels are moved by slow waves, by about this part of its size; 0 for none. See :func:`deform`."""
    tone: float = 0.0
    """It is made lighter or darker, along a random curve of about this strength; 0 for none. See :func:`tone`."""
    as_is: float = 0.0
    """Where images are deformed, the part of a batch in which nothing is moved: what is moved is blurred a little."""
    smoothing: float = 0.0
    """The part of a label that is spread over all classes, so that no answer is asked to be certain."""
    turned: bool = False
    """Whether each image of a batch is turned by a random angle: what others need, and TIGraNet does not."""
    balanced: bool = False
    """Whether all classes count the same, however many images they have."""
    keep: Keep = "last"
    """The weights that training ends with, or those of the lowest validation loss."""
    patience: int | None = None
    """Stop when the validation loss has not fallen for so many epochs, and keep the best; None for all epochs."""
    seed: int = 0

    @classmethod
    def for_images(cls, count: int, parameters: int = 0, mixed: bool = False, **chosen: Any) -> "Recipe":
        """What to do with ``count`` training images and a network of ``parameters``, but for what is ``chosen``.

        Up to 1,000 images: 1,200 steps, however few there are; with 1,000 a third of that costs 2 to 11 points. Larger
        networks learn at a lower rate. Both were chosen on validation images (``results/README.md`` says how and on
        which). Above 1,000 images it is epochs that count, 60 or 20. Networks of ``mixed`` convolutions, the oriented
        ones, learn in fewer steps, at the lower rate, and better from images that are deformed, none turned; they would
        learn them by heart. See :func:`not_by_heart`.
        """
        batch_size = 50 if count <= 10_000 else 250
        steps = 400 if mixed else 1_200
        many = steps // 20 if count <= 10_000 else 24 if mixed else 20
        epochs = -(-50 * steps // max(count, 50)) if count <= 1_000 else many
        rate = 1e-2 if parameters <= SMALL_NETWORK and not mixed else 3e-3
        usual: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "learning_rate": rate}
        return cls(**(usual | (not_by_heart(count) if mixed else {}) | chosen))

    @classmethod
    def for_network(cls, module: nn.Module, count: int, **chosen: Any) -> "Recipe":
        """:meth:`for_images` for this network."""
        mixed = getattr(getattr(module, "architecture", None), "mixed", False)
        return cls.for_images(count, sum(parameter.numel() for parameter in module.parameters()), mixed, **chosen)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1, got {value}")
            if value is not None and value != int(value):
                raise ValueError(f"{name} is a whole number, got {value}")
        for name, values in (("schedule", get_args(Schedule)), ("keep", get_args(Keep))):
            if getattr(self, name) not in values:
                raise ValueError(f"{name} is '{values[0]}' or '{values[1]}', got {getattr(self, name)!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate is positive and finite, got {self.learning_rate}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is a part of a pixel in [0, 1], got {self.jitter}")
        for name in ("zoom", "stretch", "warp"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is a part of the image's size in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.tone <= BRIGHTEST:
            raise ValueError(f"tone is a strength in [0, {BRIGHTEST:g}], got {self.tone}")
        for name, whole in (("smoothing", "a label"), ("as_is", "the images")):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is a part of {whole} in [0, 1), got {getattr(self, name)}")

    @property
    def deformed(self) -> bool:
        """Whether images are more than shifted."""
        return bool(self.zoom or self.stretch or self.warp)

    @property
    def check_every(self) -> int:
        """Epochs from one look at the validation images, and one checkpoint, to the next: 20 to 40 of them in all."""
        return max(1, self.epochs // 20)

    def __str__(self) -> str:
        """The numbers, and whatever else is not as usual."""
        told = []
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.replace("_", " ")
            if isinstance(value, float | int) and not isinstance(value, bool) and (value or name in ("jitter", "seed")):
                told.append(f"{name} {value:g}")
            elif value != field.default:
                told.append(name if value is True else f"{name} {value}")
        return ", ".join(told)
