"""How a network is trained, as a value."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Recipe:
    """Adam with a one-cycle rate on cross-entropy. The training images are never rotated."""

    epochs: int = 120
    batch_size: int = 50
    learning_rate: float = 1e-2
    """The peak of the one-cycle rate."""
    jitter: float = 0.5
    """Each image of a batch is shifted by at most this part of a pixel along each axis; 0 for none."""
    seed: int = 0

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
