"""The confusion matrix, legible for any number of classes: of many classes, those with the most errors are drawn."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes

from tigranet.figures.names import MAX_NAME_LENGTH as MAX_NAME_LENGTH
from tigranet.figures.names import shorten as shorten

MAX_DRAWN_CLASSES = 40
"""Largest number of rows and columns of the matrix. The area of a figure, and so its memory, grows with the square."""
MAX_LARGE_CELLS = 12
"""Matrices of up to this many classes have large cells and a larger font."""


def classes_with_most_errors(
    counts: Sequence[Sequence[int]] | Int[np.ndarray, "truth predicted"], at_most: int
) -> list[int]:
    """Select the classes that take part in the most errors.

    Args:
        counts: Number of images, by true class and predicted class.
        at_most: Largest number of classes to select.

    Returns:
        Indices of classes in ascending order; all of them if there are no more than ``at_most``. Of classes with
        equally many errors, those with more images are selected first.

    Example:
        >>> classes_with_most_errors([[9, 0, 0], [0, 2, 1], [0, 0, 3]], 2)
        [1, 2]
    """
    matrix = np.asarray(counts)
    images = matrix.sum(1)
    errors = images + matrix.sum(0) - 2 * matrix.diagonal()
    return sorted(np.lexsort((-images, -errors))[:at_most].tolist())


def confusion_size(class_names: Sequence[str]) -> tuple[float, float]:
    """Return the size of a figure on which :func:`draw_confusion` is legible.

    Args:
        class_names: Names of all classes.

    Returns:
        Width and height in inches. They do not grow beyond :data:`MAX_DRAWN_CLASSES`.
    """
    drawn = min(len(class_names), MAX_DRAWN_CLASSES)
    large = drawn <= MAX_LARGE_CELLS
    characters = max(len(shorten(name)) for name in class_names)
    matrix_inches = max(1.6, (0.52 if large else 0.28) * drawn)
    name_inches = 0.5 + (0.085 if large else 0.065) * characters
    height = matrix_inches + (name_inches if _needs_vertical_names(class_names) else 0.7)
    return matrix_inches + name_inches + 0.2, height + 0.3 * (drawn < len(class_names))


def draw_confusion(axes: Axes, counts: Sequence[Sequence[int]], class_names: Sequence[str]) -> None:
    """Draw a confusion matrix.

    Rows are true classes and columns are predicted classes. The shade of a cell is its fraction of the images of its
    row. The row of a class without images stays empty. Of more than :data:`MAX_DRAWN_CLASSES` classes, those with the
    most errors are drawn, and the title says so.

    Args:
        axes: Axes to draw on.
        counts: Number of images, by true class and predicted class.
        class_names: Names of the classes.
    """
    matrix = np.asarray(counts)
    drawn = classes_with_most_errors(matrix, MAX_DRAWN_CLASSES)
    if len(drawn) < len(class_names):
        title = f"{len(drawn)} of {len(class_names)} classes drawn: those with the most errors"
        axes.set_title(title, fontsize=9, loc="left", color="0.35")
    fractions = (matrix / np.maximum(matrix.sum(1, keepdims=True), 1))[np.ix_(drawn, drawn)]
    matrix, class_names = matrix[np.ix_(drawn, drawn)], [class_names[label] for label in drawn]
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


def _needs_vertical_names(class_names: Sequence[str]) -> bool:
    """Return whether the names are too long to be written side by side."""
    longest = max(len(shorten(name)) for name in class_names)
    return longest > 5 or (len(class_names) > MAX_LARGE_CELLS and longest > 2)
