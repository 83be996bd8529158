"""The answers of several networks for a few images at every angle of rotation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from torch import nn

from tigranet.data.augment.rigid import Padding
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.curves import rotate_all
from tigranet.evaluation.predictions import predict_classes

TURN_ANGLES = tuple(range(0, 360, 15))
"""Angles at which the answers are computed, in degrees."""
MAX_TURNED_IMAGES = 6
"""Largest number of images."""


@dataclass(frozen=True)
class AnswersByAngle:
    """The answers for one image at each of :data:`TURN_ANGLES`."""

    image: int
    """Index of the image in the data."""
    truth: int
    """The true class."""
    classes: dict[str, tuple[int, ...]]
    """Most probable class at each angle, by the name of the network; -1 without an answer."""
    probabilities: dict[str, tuple[float, ...]]
    """Its probability at each angle, by the name of the network."""


def answers_by_angle(
    networks: Mapping[str, nn.Module], data: LabelledImages, images: Sequence[int], padding: Padding = "zeros"
) -> tuple[AnswersByAngle, ...]:
    """Rotate images by each of :data:`TURN_ANGLES`, and return the answers of several networks.

    Args:
        networks: The networks by name, from images to logits.
        data: The images and their labels.
        images: Indices of the images to rotate.
        padding: What enters from outside the image.

    Returns:
        One entry per image.
    """
    selected = data.images[list(images)]
    if not len(selected):
        return ()
    answers = {
        name: [
            predict_classes(module, selected, partial(rotate_all, degrees=float(angle), padding=padding))
            for angle in TURN_ANGLES
        ]
        for name, module in networks.items()
    }
    return tuple(
        AnswersByAngle(
            image=image,
            truth=int(data.labels[image]),
            classes={name: tuple(int(each.classes[row]) for each in by_angle) for name, by_angle in answers.items()},
            probabilities={
                name: tuple(float(each.confidence[row]) for each in by_angle) for name, by_angle in answers.items()
            },
        )
        for row, image in enumerate(images)
    )
