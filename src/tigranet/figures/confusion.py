"""The confusion matrix, legible from two to forty classes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

MAX_NAME_LENGTH = 22
"""Class names are shortened to this many characters."""
MAX_LARGE_CELLS = 12
"""Matrices of up to this many classes have large cells and a larger font."""


def confusion_size(class_names: Sequence[str]) -> tuple[float, float]:
    """Return the size of a figure on which :func:`draw_confusion` is legible.

    Args:
        class_names: Names of the classes.

    Returns:
        Width and height in inches.
    """
    large = len(class_names) <= MAX_LARGE_CELLS
    characters = max(len(shorten(name)) for name in class_names)
    matrix_inches = max(1.6, (0.52 if large else 0.28) * len(class_names))
    name_inches = 0.5 + (0.085 if large else 0.065) * characters
    height = matrix_inches + (name_inches if _needs_vertical_names(class_names) else 0.7)
    return matrix_inches + name_inches + 0.2, height


def draw_confusion(axes: Axes, counts: Sequence[Sequence[int]], class_names: Sequence[str]) -> None:
    """Draw a confusion matrix.

    Rows are true classes and columns are predicted classes. The shade of a cell is its fraction of the images of its
    row. The row of a class without images stays empty.

    Args:
        axes: Axes to draw on.
        counts: Number of images, by true class and predicted class.
        class_names: Names of the classes.
    """
    matrix = np.asarray(counts)
    fractions = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1.15, aspect="equal")
    names, positions = [shorten(name) for name in class_names], range(len(class_names))
    font_size = 9 if len(class_names) <= MAX_LARGE_CELLS else 7
    axes.set_xticks(positions, names, rotation=90 if _needs_vertical_names(class_names) else 0, parse_math=False)
    axes.set_yticks(positions, names, parse_math=False)
    axes.tick_params(length=0, labelsize=font_size)
    axes.set_xlabel("predicted class", loc="left")  # visible there even if the matrix is wider than the screen
    axes.set_ylabel("true class", loc="top")
    axes.set_xticks(np.arange(len(class_names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(class_names) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.88", linewidth=0.8)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    for truth, prediction in zip(*matrix.nonzero(), strict=True):
        colour = "white" if fractions[truth, prediction] > 0.6 else "0.1"
        weight = "bold" if truth == prediction else "normal"
        text = f"{matrix[truth, prediction]}"
        axes.text(prediction, truth, text, ha="center", va="center", color=colour, fontsize=font_size, weight=weight)


def shorten(name: str) -> str:
    """Shorten a class name to at most :data:`MAX_NAME_LENGTH` characters.

    Args:
        name: Name of a class.

    Returns:
        The name, or its beginning followed by an ellipsis.

    Example:
        >>> shorten("bolt"), shorten("hexagonal bolt with flange")
        ('bolt', 'hexagonal bolt with f…')
    """
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"


def _needs_vertical_names(class_names: Sequence[str]) -> bool:
    """Return whether the names are too long to be written side by side."""
    longest = max(map(len, class_names))
    return longest > 5 or (len(class_names) > MAX_LARGE_CELLS and longest > 2)
