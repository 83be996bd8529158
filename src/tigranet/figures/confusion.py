"""The confusion matrix, legible for two classes and for forty."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

LONGEST = 22
"""Letters of a class name that are shown."""


def confusion_size(class_names: Sequence[str]) -> tuple[float, float]:
    """Width and height of a figure, in inches, on which :func:`draw_confusion` is legible."""
    letters = max(len(shortened(name)) for name in class_names)
    cells = max(1.6, (0.52 if len(class_names) <= 12 else 0.28) * len(class_names))
    names = 0.5 + (0.085 if len(class_names) <= 12 else 0.065) * letters
    return cells + names + 0.2, cells + (names if _turned(class_names) else 0.7)


def draw_confusion(axes: Axes, counts: Sequence[Sequence[int]], class_names: Sequence[str]) -> None:
    """Rows are what the images are, columns what the network said; a cell is as dark as its part of its row.

    The row of a class without images stays empty.
    """
    matrix = np.asarray(counts)
    parts = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    axes.imshow(parts, cmap="Blues", vmin=0, vmax=1.15, aspect="equal")
    names, every = [shortened(name) for name in class_names], range(len(class_names))
    size = 9 if len(class_names) <= 12 else 7
    axes.set_xticks(every, names, rotation=90 if _turned(class_names) else 0, parse_math=False)
    axes.set_yticks(every, names, parse_math=False)
    axes.tick_params(length=0, labelsize=size)
    axes.set_xlabel("answer", loc="left")  # where they are seen also when the matrix is wider than the screen
    axes.set_ylabel("truth", loc="top")
    axes.set_xticks(np.arange(len(class_names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(class_names) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.88", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    for truth, answer in zip(*matrix.nonzero(), strict=True):
        colour = "white" if parts[truth, answer] > 0.6 else "0.1"
        weight = "bold" if truth == answer else "normal"
        text = f"{matrix[truth, answer]}"
        axes.text(answer, truth, text, ha="center", va="center", color=colour, fontsize=size, weight=weight)


def shortened(name: str) -> str:
    """At most :data:`LONGEST` letters.

    >>> shortened("bolt"), shortened("hexagonal bolt with flange")
    ('bolt', 'hexagonal bolt with f…')
    """
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _turned(class_names: Sequence[str]) -> bool:
    """Whether the names are too long to stand side by side."""
    return max(map(len, class_names)) > 5 or (len(class_names) > 12 and max(map(len, class_names)) > 2)
