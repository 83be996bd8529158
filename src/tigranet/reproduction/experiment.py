"""One experiment, and a table of experiments, as values."""

from dataclasses import dataclass, field
from typing import Any, Literal

from tigranet.architecture import PRESETS
from tigranet.choices import Precision

Column = Literal[
    "train",
    "validation",
    "test",
    "moved",
    "nearest",
    "rotated",
    "drop",
    "error",
    "protocol",
    "at_45",
    "at_90",
    "balanced",
    "log_loss",
    "minutes",
]
"""A measured quantity that a table shows."""


@dataclass(frozen=True)
class Experiment:
    """One method on one data set, trained in one way: a row of a table."""

    method: str
    """``TIGraNet``, or the name of a baseline."""
    data: str
    """Name of the data set."""
    architecture: str
    """A preset of the method, or its layers."""
    reported: tuple[str, ...] = ()
    """The paper's results, one for each column that the paper has; empty if the experiment is not in the paper."""
    note: str = ""
    """The difference from other experiments with the same method."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the network."""
    recipe: dict[str, Any] = field(default_factory=dict)
    """Fields of the recipe that differ from the default."""
    without: tuple[str, ...] = ()
    """Parts of the network that are replaced by the identity."""
    images: int | None = None
    """Number of training images; None for all."""
    balanced_draw: bool = True
    """Whether the ``images`` are the same number for each class. Otherwise they are drawn from all images alike, and
    the classes are as frequent as in the data set."""
    windowed: bool = False
    """Whether all images, for training and for testing, are seen through a disc. See
    :func:`tigranet.layers.disc_window.fade_to_colour`."""
    on_validation: bool = False
    """Whether the validation images take the place of the test images, which are then not used at all."""
    includes_validation: bool = False
    """Whether the network is trained on the validation images too, after all choices have been made."""
    precision: Precision = "tf32"
    """Precision of matrix products during training."""

    @property
    def kind(self) -> str:
        """The method with its note, which is the same for all numbers of training images."""
        return f"{self.method} ({self.note})" if self.note else self.method

    @property
    def name(self) -> str:
        """The name, which is unique among the experiments on one data set."""
        return self.kind if self.images is None else f"{self.kind}, {self.images:,} images"

    @property
    def layers(self) -> str:
        """The layers of the architecture.

        They are written out for TIGraNet, so that results of a preset that has changed since are not used.
        """
        return PRESETS.get(self.architecture, self.architecture) if self.method == "TIGraNet" else self.architecture


@dataclass(frozen=True)
class TableSpec:
    """A table of experiments."""

    title: str
    """The heading."""
    columns: tuple[Column, ...]
    """The columns that the paper has too."""
    rows: tuple[Experiment, ...]
    """The experiments, one per row."""
    extra_columns: tuple[Column, ...] = ()
    """The columns that the paper does not have."""
    seeds: int = 5
    """Number of runs of each experiment."""

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The columns from left to right, without those of the paper's results."""
        return (*self.columns, *self.extra_columns)

    @property
    def varies_training_size(self) -> bool:
        """Whether the experiments differ in the number of training images."""
        return any(experiment.images is not None for experiment in self.rows)

    @property
    def has_curve(self) -> bool:
        """Whether there is a curve over the number of training images: if that varies, and all data are the same."""
        return self.varies_training_size and len({experiment.data for experiment in self.rows}) == 1

    @property
    def on_validation(self) -> bool:
        """Whether the results are those of validation images."""
        return any(experiment.on_validation for experiment in self.rows)


ROTATED_TRAINING: dict[str, Any] = {"note": "trained on turned images", "recipe": {"turned": True}}
"""Arguments of an experiment that trains on rotated images."""
NO_JITTER: dict[str, Any] = {"note": "no jitter", "recipe": {"jitter": 0.0}}
"""Arguments of an experiment that trains without sub-pixel shifts."""
TORUS: dict[str, Any] = {"note": "torus", "options": {"boundary": "torus"}}
"""Arguments of an experiment on the torus."""
GLOBAL_AVERAGE, C4, C8 = "global average", "C4", "C8"
"""Notes of baselines."""
