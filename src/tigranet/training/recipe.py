"""How a network is trained, as a value."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Adam with a one-cycle rate on cross-entropy. The training images are never rotated."""

    epochs: int
    batch_size: int = 50
    learning_rate: float = 1e-2
    """The peak of the one-cycle rate."""
    jitter: float = 0.5
    """Each image of a batch is shifted by at most this part of a pixel along each axis; 0 for none."""
    seed: int = 0

    @classmethod
    def for_images(cls, count: int, **chosen: Any) -> "Recipe":
        """What to do with ``count`` training images, but for what is ``chosen``.

        The first row is what ``results/mnist-012.jsonl`` was measured with. The rate of the others is lower because
        the paper's larger network learns less at 1e-2.
        """
        epochs, batch_size, learning_rate = (
            (120, 50, 1e-2) if count <= 1_000 else (60, 50, 3e-3) if count <= 10_000 else (20, 250, 3e-3)
        )
        return cls(**({"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate} | chosen))

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is positive, got {self.learning_rate}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is a part of a pixel in [0, 1], got {self.jitter}")

    def __str__(self) -> str:
        return ", ".join(f"{field.name.replace('_', ' ')} {getattr(self, field.name):g}" for field in fields(self))
