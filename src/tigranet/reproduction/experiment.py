"""A row of a table, and a table, as values."""

from dataclasses import dataclass, field
from typing import Any, Literal

from tigranet.architecture import PRESETS

Column = Literal["train", "validation", "test", "moved", "nearest", "rotated", "drop"]


@dataclass(frozen=True)
class Row:
    """One method on one data set, trained in one way."""

    method: str
    data: str
    architecture: str
    reported: tuple[str, ...] = ()
    """What the paper prints, a value a column; nothing where the row is ours."""
    note: str = ""
    """What tells it from the other rows of the method."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the network."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """What is not as usual in the training."""
    without: tuple[str, ...] = ()
    """Parts of the network that are left out."""
    images: int | None = None
    """How many of the training images are used, as many of each class; None for all."""

    @property
    def kind(self) -> str:
        """The method, in whichever of its forms."""
        return f"{self.method} ({self.note})" if self.note else self.method

    @property
    def name(self) -> str:
        """What tells it from the other rows on its data."""
        return self.kind if self.images is None else f"{self.kind}, {self.images:,} images"

    @property
    def layers(self) -> str:
        """What the architecture stands for; in full for TIGraNet, so that a preset that has changed is another row."""
        return PRESETS.get(self.architecture, self.architecture) if self.method == "TIGraNet" else self.architecture


@dataclass(frozen=True)
class TableSpec:
    """A table: rows, and what is printed of each."""

    title: str
    columns: tuple[Column, ...]
    """Those that the paper has too."""
    rows: tuple[Row, ...]
    also: tuple[Column, ...] = ()
    """Those that it has not."""
    seeds: int = 5

    @property
    def by_images(self) -> bool:
        """Whether its rows differ in how many images they are trained on."""
        return any(row.images is not None for row in self.rows)


TURNED: dict[str, Any] = {"note": "trained on turned images", "recipe": {"turned": True}}
NO_JITTER: dict[str, Any] = {"note": "no jitter", "recipe": {"jitter": 0.0}}
TORUS: dict[str, Any] = {"note": "torus", "options": {"boundary": "torus"}}
GAP, C4, C8 = "global average", "C4", "C8"
