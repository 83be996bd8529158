"""Rotated images with the predictions of a network, like Fig. 1 of the paper."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from tigranet.data.augment.rigid import Padding, rotate
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import predict
from tigranet.evaluation.predictions import names_of_answers
from tigranet.figures.figure_output import ignore_missing_glyphs
from tigranet.figures.maps import ERROR_COLOUR
from tigranet.figures.names import longest_word, wrap

CORRECT_COLOUR = "#0072b2"
"""Colour of correct predictions, which colour-blind readers can distinguish from the colour of errors."""
EXAMPLE_ANGLES = (0.0, 30.0, 60.0, 90.0, 135.0, 180.0, 225.0, 270.0, 330.0)
"""Degrees by which the images of :func:`save_rotated` are rotated."""
CELL_INCHES = 1.0
"""Width of the figure per image."""
GAP, LINE_HEIGHT = 0.12, 0.17
"""Distance between images, and height of a line of text below them, as fractions of the image size."""
CAPTION_LENGTHS, CAPTION_LINES = (12, 17), 3
"""Number of characters of a line below an image, more only for longer words; and largest number of lines."""
LARGEST_FONT, LETTER_WIDTH = 10.0, 0.75
"""Largest font size of a caption in points, and the width of a bold letter as a fraction of the font size."""
MAX_EXAMPLE_CLASSES = 16
"""Largest number of classes of which images are drawn."""
MAX_EXAMPLE_VALUES = 2**24
"""Largest number of pixel values of all rotated images, which are in memory together. One row is always drawn."""


def draw_rotated(
    axes: Axes,
    module: nn.Module,
    data: LabelledImages,
    class_names: Sequence[str],
    angles: Sequence[float],
    padding: Padding = "zeros",
) -> None:
    """Draw rotated images with the predictions of a network: one row per image, one column per angle.

    The prediction stands below the image, on several lines if its name is long. Wrong predictions are marked by a
    cross and a thick frame. Images that are padded with zeros, such as digits, are drawn dark on white. Other images
    are drawn as photographs.

    Args:
        axes: Axes to draw on.
        module: The network.
        data: Images and labels.
        class_names: Names of the classes.
        angles: Rotation angles in degrees, counter-clockwise.
        padding: What enters the corners of rotated images.
    """
    count, size = len(data.labels), data.images.shape[-1]
    repeated = data.images.repeat_interleave(len(angles), dim=0)
    rotated = rotate(repeated, torch.tensor(angles, dtype=torch.float32).repeat(count), padding=padding)
    predictions = predict(module, rotated).reshape(count, len(angles)).tolist()
    names = _wrapped_names(class_names)
    captions = [
        [names[answer] + ("" if answer == int(label) else " ✗") for answer in row]
        for row, label in zip(predictions, data.labels, strict=True)
    ]
    text_height = LINE_HEIGHT * _most_lines(captions)
    across, down = size * (1 + GAP), size * (1 + GAP + text_height)
    axes.set(xlim=(-GAP * size, across * len(angles)), ylim=(down * count, -2 * GAP * size), aspect="equal")
    axes.axis("off")
    font_size = _font_size(axes, captions, down / across)
    for row in range(count):
        for column, angle in enumerate(angles):
            left, top = across * column, down * row
            image = rotated[row * len(angles) + column]
            pixels = _photograph(image, data.images[row]) if padding != "zeros" else 1 - image.mean(0).numpy()
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, extent=(left, left + size, top + size, top))
            correct = predictions[row][column] == int(data.labels[row])
            colour = CORRECT_COLOUR if correct else ERROR_COLOUR
            axes.text(
                left + size / 2, top + size * (1 + GAP / 2), captions[row][column], ha="center", va="top",
                weight="bold", fontsize=font_size, linespacing=1.0, color=colour, parse_math=False,
            )  # fmt: skip
            edge, line_width = ("0.8", 0.8) if correct else (ERROR_COLOUR, 2.5)
            axes.add_patch(Rectangle((left, top), size, size, facecolor="none", edgecolor=edge, linewidth=line_width))
            if row == 0:
                axes.text(left + size / 2, -GAP * size, f"{angle:g}°", ha="center", va="center", color="0.35")


def save_rotated(
    path: Path,
    module: nn.Module,
    data: LabelledImages,
    class_names: Sequence[str],
    padding: Padding = "zeros",
    part: str = "test",
    trained_on: str = "upright",
) -> None:
    """Save a figure of :func:`draw_rotated` with the first images of each class.

    Up to six images are shared equally among the classes; with more classes there is one image per class. Of more than
    :data:`MAX_EXAMPLE_CLASSES` classes, or of large images, only the most frequent classes are drawn, and the title
    says so.

    Args:
        path: Path of the figure; its suffix decides the format.
        module: The network.
        data: Images and labels.
        class_names: Names of the classes.
        padding: What enters the corners of rotated images.
        part: The part of the data set that the images belong to, for the title.
        trained_on: Orientation of the training images, for the title; empty if it is not known.

    Raises:
        ValueError: If there are no images.
    """
    if not len(data.labels):
        raise ValueError(f"expected at least one {part} image to draw, got none")
    indices = _example_indices(data, len(class_names))
    present, drawn = (len(labels.unique()) for labels in (data.labels, data.labels[indices]))
    trained = f" (trained on {trained_on} images)" if trained_on else ""
    title = f"predictions for rotated {part} images{trained}"
    if drawn < present:
        title += f"\n{drawn} of {len(class_names)} classes drawn, the most frequent ones"
    lines = _most_lines([_wrapped_names(class_names)])
    row_inches = CELL_INCHES * (1 + GAP + LINE_HEIGHT * lines) / (1 + GAP)
    width, height = CELL_INCHES * len(EXAMPLE_ANGLES), row_inches * len(indices) + 0.5
    figure = Figure(figsize=(width, height + 0.2 * (drawn < present)), layout="constrained")
    draw_rotated(figure.add_subplot(), module, data.take(indices), class_names, EXAMPLE_ANGLES, padding)
    figure.suptitle(title, fontsize=11)
    with ignore_missing_glyphs():
        figure.savefig(path, dpi=150)


def _wrapped_names(class_names: Sequence[str]) -> list[str]:
    """Return the names of all answers on several lines, which are long enough for all but very long words."""
    names = names_of_answers(class_names)
    shortest, longest = CAPTION_LENGTHS
    length = min(longest, max(shortest, *(longest_word(name) for name in names)))
    return ["\n".join(wrap(name, length, CAPTION_LINES)) for name in names]


def _most_lines(captions: Sequence[Sequence[str]]) -> int:
    return 1 + max(caption.count("\n") for row in captions for caption in row)


def _font_size(axes: Axes, captions: Sequence[Sequence[str]], aspect: float) -> float:
    """Return a font size at which captions fit into cells of this ratio of height to width."""
    width, height = (72 * pixels / axes.figure.dpi for pixels in axes.figure.bbox.size)
    cell_points = min(width / len(captions[0]), height / (len(captions) * aspect))
    longest = max(len(line) for row in captions for caption in row for line in caption.split("\n"))
    return float(min(LARGEST_FONT, cell_points / (LETTER_WIDTH * max(1, longest))))


def _example_indices(data: LabelledImages, classes: int) -> Int[Tensor, " rows"]:
    """Return the indices of the first images of the most frequent classes, in the order of the classes."""
    max_rows = max(1, MAX_EXAMPLE_VALUES // (len(EXAMPLE_ANGLES) * data.images[0].numel()))
    per_class = min(max_rows, max(1, 6 // classes))
    counts = torch.bincount(data.labels, minlength=classes)
    most_frequent = counts.argsort(descending=True, stable=True)[: min(MAX_EXAMPLE_CLASSES, max_rows // per_class)]
    return torch.cat(
        [torch.nonzero(data.labels == label).flatten()[:per_class] for label in most_frequent.sort().values]
    )


def _photograph(image: Float[Tensor, "maps height width"], upright: Float[Tensor, "maps height width"]) -> np.ndarray:
    """Return pixels to show: colours for three channels, grey for any other number.

    Grey values are stretched between the 0.5th and the 99.5th percentile of the upright image, so the contrast is the
    same at every angle.
    """
    if len(image) == 3:
        return image.clamp(0, 1).permute(1, 2, 0).numpy()
    low, high = np.percentile(upright.mean(0).numpy(), (0.5, 99.5))
    grey = image.mean(0).numpy()
    return np.clip((grey - low) / (high - low), 0, 1) if high > low else grey
