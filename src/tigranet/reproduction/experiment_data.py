"""The images of an experiment: few of them, validation images in place of test images, or seen through a disc."""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from tigranet.data import DataSet, LabelledImages
from tigranet.data.splits import draw, draw_balanced
from tigranet.evaluation.rotation_protocol import mean_colour
from tigranet.layers.disc_window import fade_to_colour
from tigranet.reproduction.experiment import Experiment

MAX_VALIDATION_IMAGES = 1_000
"""With few training images, no more validation images than this are used, so that validation does not take longer."""
HELD_OUT_DIVISOR = 3
"""A data set without validation images lends this part of its training images, one third, where they are needed."""


def experiment_data(experiment: Experiment, data: DataSet, seed: int) -> DataSet:
    """Return the images that an experiment uses.

    Args:
        experiment: The experiment.
        data: All images of its data set.
        seed: Seed of the random draw of the training images.

    Returns:
        The data set of the experiment.
    """
    if experiment.on_validation:
        data = validate_as_test(data, seed)
    if experiment.includes_validation:
        data = train_on_validation(data)
    if experiment.images is not None:
        validation_images = min(MAX_VALIDATION_IMAGES, len(data.validation.labels))
        choose = draw_balanced if experiment.balanced_draw else draw_any
        data = replace(
            data,
            train=data.train.take(choose(data.train.labels, seed, experiment.images)),
            validation=data.validation.take(list(range(validation_images))),
        )
    return see_through_disc(data) if experiment.windowed else data


def validate_as_test(data: DataSet, seed: int) -> DataSet:
    """Put the validation images in the place of the test images, so that the test images are not used.

    Args:
        data: The data set.
        seed: Seed of the draw of validation images from the training images, if the data set has no validation images.

    Returns:
        A data set whose test images are its validation images.
    """
    if not len(data.validation.labels):
        labels = data.train.labels
        kept, held_out = draw(labels, data.class_names, seed, len(labels) - len(labels) // HELD_OUT_DIVISOR)
        data = replace(data, train=data.train.take(kept), validation=data.train.take(held_out))
    return replace(data, test=data.validation, test_files=None, test_positions=None)


def train_on_validation(data: DataSet) -> DataSet:
    """Add the validation images to the training images.

    Args:
        data: The data set.

    Returns:
        A data set without validation images.
    """
    pairs = zip(data.train[:2], data.validation[:2], strict=True)
    return replace(data, train=LabelledImages(*map(torch.cat, pairs)), validation=data.validation.take([]))


def draw_any(labels: Int[Tensor, " images"], seed: int, count: int) -> Int[Tensor, " drawn"]:
    """Draw ``count`` images at random, whatever their classes. A larger draw contains every smaller one.

    Args:
        labels: Label of each image.
        seed: Seed of the random draw.
        count: Number of images to draw; all images, if there are not more.

    Returns:
        Positions of the images, in increasing order.

    Example:
        >>> draw_any(torch.tensor([0, 1, 0]), seed=0, count=5)
        tensor([0, 1, 2])
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    return order[:count].sort().values


def see_through_disc(data: DataSet) -> DataSet:
    """Replace what is outside a disc by the mean colour of the training images, in all images of a data set.

    When a photograph rotates, its corners leave the canvas and others enter. Seen through a disc, upright and rotated
    images show the same part, so that only the rotation itself is measured.

    Args:
        data: The data set.

    Returns:
        The data set with all images seen through the disc.
    """
    colour = mean_colour(data.train.images)[:, None, None]

    def windowed(part: LabelledImages) -> LabelledImages:
        return part._replace(images=fade_to_colour(part.images, colour))

    return replace(data, train=windowed(data.train), validation=windowed(data.validation), test=windowed(data.test))
