"""What a predictor and a server answer for images: labels, probabilities, and which images are unknown."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.file_predictions import UNKNOWN, is_known


@dataclass(frozen=True)
class Answer:
    """The answer for some images."""

    label: Sequence[str]
    """Name of the most probable class of each image, or 'unknown'."""
    probabilities: np.ndarray
    """Probabilities of all classes, (images, classes)."""
    unknown: np.ndarray
    """For each image whether its label is 'unknown': it resembles none of the classes, or no class is probable enough.
    A class may have the same name."""

    @property
    def probability(self) -> np.ndarray:
        """Probability of the most probable class of each image."""
        return self.probabilities.max(1) if len(self.label) else np.zeros(0, np.float32)


def answer_of(
    class_names: Sequence[str],
    probabilities: Float[Tensor, "count classes"],
    novelty: Float[Tensor, " count"] | None = None,
    reject: float = 0.0,
) -> Answer:
    """Return the labels that probabilities and novelties stand for.

    Args:
        class_names: Name of each class.
        probabilities: The probabilities of all classes, for each image.
        novelty: How little each image resembles the known classes, see
            :class:`~tigranet.evaluation.unknown.novelty.NoveltyDetector`. None if unknown images are not detected.
        reject: Below this probability an image is unknown.

    Returns:
        The answer, with the probabilities in single precision.

    Example:
        >>> from torch import tensor
        >>> answer = answer_of(["cat", "dog"], tensor([[0.9, 0.1], [0.2, 0.8]]), tensor([0.5, 7.0]))
        >>> answer.label, answer.unknown.tolist()
        (['cat', 'unknown'], [False, True])
    """
    highest, classes = probabilities.max(1)
    novelties = [None] * len(probabilities) if novelty is None else [round(value, 6) for value in novelty.tolist()]
    known = [is_known(value, new, reject) for value, new in zip(highest.tolist(), novelties, strict=True)]
    labels = [
        class_names[index] if accepted else UNKNOWN for index, accepted in zip(classes.tolist(), known, strict=True)
    ]
    return Answer(labels, probabilities.numpy().astype(np.float32), ~np.array(known, dtype=bool))
