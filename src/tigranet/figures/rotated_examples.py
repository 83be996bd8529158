"""Rotated images with the answers of a network, in the manner of the paper's Fig. 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from tigranet.data.augment.rigid import Padding, rotate
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import predict
from tigranet.figures.maps import WRONG
from tigranet.figures.svg import any_letters

RIGHT = "#0072b2"  # told apart from the colour of mistakes by colour-blind readers


def draw_rotated(
    axes: Axes,
    module: nn.Module,
    data: LabelledImages,
    class_names: Sequence[str],
    angles: Sequence[float],
    padding: Padding = "zeros",
) -> None:
    """One row an image of ``data``, one column an angle; under each, the answer, in a frame if it is wrong.

    Digits, whose ``padding`` is zeros, are drawn dark on white; photographs as they are.
    """
    count, size = len(data.labels), data.images.shape[-1]
    images = data.images.repeat_interleave(len(angles), dim=0)
    turned = rotate(images, torch.tensor(angles, dtype=torch.float32).repeat(count), padding=padding)
    answers = predict(module, turned).reshape(count, len(angles)).tolist()
    step = size + 9  # room for the answer
    axes.set(xlim=(-2, step * len(angles)), ylim=(step * count - 2, -9), aspect="equal")
    axes.axis("off")
    bold: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
    for row in range(count):
        for column, angle in enumerate(angles):
            left, top = step * column, step * row
            image = turned[row * len(angles) + column]
            shown = _photograph(image, data.images[row]) if padding == "reflection" else 1 - image.mean(0).numpy()
            axes.imshow(shown, cmap="gray", vmin=0, vmax=1, extent=(left, left + size, top + size, top))
            answer, right = answers[row][column], answers[row][column] == int(data.labels[row])
            colour = RIGHT if right else WRONG
            text = class_names[answer] if right else f"{class_names[answer]} ✗"
            axes.text(left + size / 2, top + size + 4, text, **bold, color=colour, parse_math=False)
            edge, line = ("0.8", 0.8) if right else (WRONG, 2.5)
            axes.add_patch(Rectangle((left, top), size, size, facecolor="none", edgecolor=edge, linewidth=line))
            if row == 0:
                axes.text(left + size / 2, -4, f"{angle:g}°", ha="center", va="center", color="0.35")


def save_rotated(
    path: Path, module: nn.Module, data: LabelledImages, class_names: Sequence[str], padding: Padding = "zeros"
) -> None:
    """A page of :func:`draw_rotated` with two images of each class, or fewer where there are many classes."""
    each = max(1, 6 // len(class_names))
    rows = torch.cat([torch.nonzero(data.labels == label).flatten()[:each] for label in range(len(class_names))])
    angles = [0.0, 30.0, 60.0, 90.0, 135.0, 180.0, 225.0, 270.0, 330.0]
    figure = Figure(figsize=(0.78 * len(angles), 0.8 * len(rows)), layout="constrained")
    draw_rotated(figure.add_subplot(), module, data.take(rows), class_names, angles, padding)
    figure.suptitle("trained upright, asked at every angle", fontsize=11)
    with any_letters():
        figure.savefig(path, dpi=150)


def _photograph(image: Float[Tensor, "maps height width"], upright: Float[Tensor, "maps height width"]) -> np.ndarray:
    """Three channels in colour; any other number in grey, from nearly the darkest to nearly the lightest upright."""
    if len(image) == 3:
        return image.clamp(0, 1).permute(1, 2, 0).numpy()
    low, high = np.percentile(upright.mean(0).numpy(), (0.5, 99.5))
    grey = image.mean(0).numpy()
    return np.clip((grey - low) / (high - low), 0, 1) if high > low else grey
