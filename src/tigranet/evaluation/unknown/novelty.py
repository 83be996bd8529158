"""How little an image resembles the classes that a network knows: the novelty, above 1 for unknown images."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import LabelledImages
from tigranet.data.splits import draw_balanced
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.evaluation.unknown.contrast import ContrastRange
from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.known_scores import MAX_SCORES, MIN_SCORES, KnownScores
from tigranet.evaluation.unknown.representation import Representation, known_images, measure_canonical, represent
from tigranet.model import TIGraNet

DEFAULT_SHARE = 0.95
"""Share of images of known classes that are accepted by default."""
MAX_TRAINING_IMAGES = 5_000
"""Largest number of training images that a detector is fitted on. Of more, as many of each class are drawn."""
MAX_CLASS_NUMBERS = 2**21
"""Largest number of elements of the means of all classes together, which keeps a stored detector below 11 MB."""
BATCH_SIZE = 64
"""Largest batch size; large images are computed in smaller batches."""


@dataclass(frozen=True)
class NoveltyDetector:
    r"""A detector of unknown images, and the scores of validation images.

    The novelty of an image with the score s is

    .. math:: \nu(x) = \frac{s(x) - s_{1/2}}{q_c - s_{1/2}}

    with the median :math:`s_{1/2}` of the scores of the validation images and the limit :math:`q_c` up to which the
    share c of images of known classes is accepted, see :class:`KnownScores`. A typical image of a known class has the
    novelty 0, and above 1 an image counts as unknown. An image that is blank by its :class:`ContrastRange` has at
    least the novelty there.

    Args:
        detector: The detector.
        known: The scores of validation images.
        contrast: The contrasts of training and validation images.
    """

    detector: DistanceAndProbability
    known: KnownScores
    contrast: ContrastRange

    @classmethod
    def fit(cls, net: TIGraNet, train: LabelledImages, validation: LabelledImages) -> "NoveltyDetector":
        """Fit a detector to a network.

        All images are brought to their canonical rotation, so that an image and its quarter turns have the same score.

        Args:
            net: The network; it computes on the device that it is on.
            train: Its training images. Classes may have a single image.
            validation: Images of the same classes that it was not trained on.

        Returns:
            The detector.

        Raises:
            ValueError: If there are fewer than two training images or two validation images for which the network
                gives finite numbers, or if there are too many classes.
        """
        if net.num_classes * net.num_features > MAX_CLASS_NUMBERS:
            raise ValueError(
                f"expected at most {MAX_CLASS_NUMBERS // net.num_features:,} classes for a network with "
                f"{net.num_features:,} features, got {net.num_classes:,}"
            )
        if len(train.labels) > MAX_TRAINING_IMAGES:
            train = train.take(draw_balanced(train.labels, 0, MAX_TRAINING_IMAGES))
        known = known_images(net, measure_images(net, train.images), train.labels)
        if len(known.labels) < 2:
            raise ValueError(f"expected at least 2 training images with finite features, got {len(known.labels)}")
        return cls.calibrate(DistanceAndProbability.estimate(known), known.images.contrast, net, validation)

    @classmethod
    def calibrate(
        cls,
        detector: DistanceAndProbability,
        contrasts: Float[Tensor, " train"],
        net: TIGraNet,
        validation: LabelledImages,
    ) -> "NoveltyDetector":
        """Calibrate a detector on validation images.

        Args:
            detector: A detector that was fitted to the network. How much its scores vary is measured again.
            contrasts: The contrasts of the training images.
            net: The network.
            validation: Images of known classes that the network was not trained on.

        Returns:
            The calibrated detector.

        Raises:
            ValueError: If there are fewer than two images for which the network gives finite numbers.
        """
        images = represent(net)(measure_images(net, validation.images))
        images = images.take(images.is_finite())
        if len(images.logits) < MIN_SCORES:
            raise ValueError(f"expected at least {MIN_SCORES} validation images, got {len(images.logits)}")
        if len(images.logits) > MAX_SCORES:
            order = torch.randperm(len(images.logits), generator=torch.Generator().manual_seed(0))
            images = images.take(order[:MAX_SCORES])
        detector = detector.scaled(images).rounded()
        contrast = ContrastRange.measure(torch.cat([contrasts, images.contrast]))
        return cls(detector, KnownScores(tuple(detector.scores(images).tolist())), contrast)

    def novelty(self, images: Representation, share: float = DEFAULT_SHARE) -> Float[Tensor, " count"]:
        """Return the novelty of images.

        Args:
            images: The images, computed from their canonical rotations.
            share: The share of images of known classes to accept.

        Returns:
            One number per image.

        Raises:
            ValueError: If ``share`` is not between 0 and 1.
        """
        origin, unit = self.known.scale(share)
        novelty = (self.detector.scores(images) - origin) / unit
        blankness = self.contrast.novelty(images.contrast)
        return torch.where(blankness > 1, novelty.maximum(blankness), novelty)

    def describe(self) -> str:
        """Describe the detector in one line.

        Returns:
            The number of validation images that it is calibrated on, and whether they are too few for the default.
        """
        images = len(self.known.scores)
        sentence = f"detector of unknown images calibrated on {images} validation images"
        if self.known.notice(DEFAULT_SHARE) is None:
            return sentence
        return f"{sentence}, which are few: it accepts about {100 * DEFAULT_SHARE:g} % of the images of known classes"


class UnknownImages(NamedTuple):
    """Which images are labelled as unknown."""

    detector: NoveltyDetector
    """The detector."""
    share: float = DEFAULT_SHARE
    """The share of images of known classes to accept."""


def measure_images(net: TIGraNet, images: Float[Tensor, "count maps height width"]) -> Float[Tensor, "count columns"]:
    """Compute what a detector needs of images, in batches.

    Args:
        net: The network; it computes on the device that it is on, in evaluation mode.
        images: The images.

    Returns:
        One row per image, see :func:`~tigranet.evaluation.unknown.representation.measure_canonical`.
    """
    batches = images.split(limit_batch_size(BATCH_SIZE, *images.shape[2:]))
    return apply_in_batches(net, batches, measure_canonical(net))


def logits_and_novelty(
    net: TIGraNet, unknown: UnknownImages
) -> Callable[[Float[Tensor, "batch maps height width"]], Float[Tensor, "batch columns"]]:
    """Return a function that computes the logits and the novelty of images.

    Images that are quarter turns of each other, in one batch, have the same numbers, see
    :func:`~tigranet.evaluation.canonical_logits.canonical_logits`.

    Args:
        net: The network, on any device. Its weights at the time of this call are used.
        unknown: Which images are unknown.

    Returns:
        The function, from images on the device of the network to one row per image in double precision on the CPU: its
        logits, followed by its novelty.

    Raises:
        ValueError: If the share is not between 0 and 1.
    """
    measure, representation = measure_canonical(net), represent(net)
    unknown.detector.known.scale(unknown.share)  # an error before the first image is read

    def rows(images: Tensor) -> Tensor:
        answers = representation(measure(images))
        return torch.cat([answers.logits, unknown.detector.novelty(answers, unknown.share)[:, None]], dim=1)

    return rows
