"""The rows of the paper's Tables 2, 3 and 4, as data."""

from dataclasses import dataclass
from typing import Literal

from tigranet.graphs.grid import Boundary

Column = Literal["train", "validation", "moved", "test"]


@dataclass(frozen=True)
class Row:
    """One method on one data set, trained in one way."""

    method: str
    data: str
    architecture: str
    reported: tuple[str, ...] = ()
    """What the paper prints, a value a column; nothing where the row is ours."""
    turned: bool = False
    """Whether the training images are turned at random."""
    jitter: bool = True
    boundary: Boundary = "free"

    @property
    def name(self) -> str:
        """What tells it from the other rows."""
        notes = [
            "trained on turned images" if self.turned else "",
            "" if self.jitter else "no jitter",
            "torus" if self.boundary == "torus" else "",
        ]
        told = ", ".join(filter(None, notes))
        return f"{self.method} ({told})" if told else self.method


@dataclass(frozen=True)
class TableOf:
    """A table of the paper."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    seeds: int = 5


def _small(method: str, *reported: str, turned: bool = False, jitter: bool = True) -> Row:
    return Row(method, "mnist-012", "paper-small", reported, turned, jitter)


TABLES = {
    "table2": TableOf(
        "Table 2: MNIST-012, accuracy in per cent",
        ("train", "validation", "moved"),
        (
            _small("ConvNet", "99", "94", "78 ± 2.1", turned=True),
            _small("STN", "100", "97", "93 ± 0.97", turned=True),
            _small("ConvNet", "100", "100", "55 ± 5"),
            _small("STN", "100", "98", "50 ± 5"),
            _small("TIGraNet", "98", "97", "94 ± 0.42"),
            _small("TIGraNet", jitter=False),
        ),
    ),
    "table3": TableOf(
        "Table 3: MNIST-rot and MNIST-trans, accuracy on the moved test set in per cent",
        ("moved", "test"),
        (
            Row("ConvNet", "mnist-rot", "paper", ("44.3",)),
            Row("STN", "mnist-rot", "paper", ("44.5",)),
            Row("TIGraNet", "mnist-rot", "paper", ("83.8",)),
            Row("TIGraNet", "mnist-rot", "paper", jitter=False),
            Row("ConvNet", "mnist-trans", "paper", ("43.5",)),
            Row("STN", "mnist-trans", "paper", ("67.1",)),
            Row("TIGraNet", "mnist-trans", "paper", ("79.6",)),
            Row("TIGraNet", "mnist-trans", "paper", boundary="torus"),
        ),
    ),
    "table4": TableOf(
        "Table 4: ETH-80, accuracy in per cent",
        ("test",),
        (
            Row("STN", "eth80", "paper", ("45.1",)),
            Row("ConvNet", "eth80", "paper", ("80.1",)),
            Row("DeepScat", "eth80", "paper", ("87.3",)),
            Row("HarmNet", "eth80", "paper", ("94.0",)),
            Row("TIGraNet", "eth80", "paper", ("95.1",)),
            Row("TIGraNet", "eth80", "paper", boundary="torus"),
        ),
    ),
}
"""Without augmentation unless a row says so; jitter, of half a pixel, for all methods alike."""
