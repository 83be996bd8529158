"""Images that show what a network can do: right and wrong answers of each class, and the least certain answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.predictions import highest_classes, names_of_answers

EXAMPLES_PER_CLASS = 3
"""Largest number of right answers, and of wrong answers, that are shown of a class."""
LEAST_CERTAIN = 12
"""Largest number of images with the least certain answers."""


@dataclass(frozen=True)
class Answer:
    """The answer of a network for one image."""

    image: int
    """Index of the image in the data."""
    truth: str
    """Name of the true class."""
    answer: str
    """Name of the most probable class."""
    probability: float
    """Probability of the most probable class; 0 without an answer."""
    second: str | None = None
    """Name of the second most probable class; None without an answer, or with one class."""
    second_probability: float = 0.0
    """Probability of the second most probable class."""
    is_right: bool = False
    """Whether the most probable class is the true one."""
    file: str | None = None
    """Path of the image, if it comes from a file."""


@dataclass(frozen=True)
class ClassExamples:
    """Right and wrong answers for images of one class."""

    name: str
    """Name of the class."""
    right: tuple[Answer, ...]
    """Right answers: the most probable one, one of middle probability, and the least probable one."""
    wrong: tuple[Answer, ...]
    """The wrong answers with the highest probabilities."""
    wrong_count: int
    """Number of all wrong answers for images of this class."""


class AnswerTable:
    """The answers for all images, to choose examples from.

    Args:
        data: The images and their labels.
        logits: The logits of the images.
        class_names: Names of all classes.
        files: Paths of the images, if they come from files.
    """

    def __init__(
        self,
        data: LabelledImages,
        logits: Float[Tensor, "count classes"],
        class_names: Sequence[str],
        files: Sequence[str] | None = None,
    ) -> None:
        self.labels, self.class_names, self.files = data.labels, tuple(class_names), files
        self.classes = highest_classes(logits)
        finite = torch.where(logits.isfinite().all(1, keepdim=True), logits, 0.0)
        top = finite.softmax(1).topk(min(2, logits.shape[1]))
        self.top_classes = top.indices
        self.top_probabilities = torch.where((self.classes >= 0)[:, None], top.values, 0.0)
        self.is_right = self.classes == self.labels

    @property
    def confidence(self) -> Float[Tensor, " count"]:
        """Probability of the answer for each image; 0 without an answer."""
        return self.top_probabilities[:, 0]

    def answer(self, image: int) -> Answer:
        """Return the answer for one image.

        Args:
            image: Index of the image.

        Returns:
            The answer, with the second most probable class.
        """
        probabilities = self.top_probabilities[image].tolist()
        has_second = len(probabilities) > 1 and int(self.classes[image]) >= 0
        return Answer(
            image=image,
            truth=self.class_names[int(self.labels[image])],
            answer=names_of_answers(self.class_names)[int(self.classes[image])],
            probability=probabilities[0],
            second=self.class_names[int(self.top_classes[image, 1])] if has_second else None,
            second_probability=probabilities[1] if has_second else 0.0,
            is_right=bool(self.is_right[image]),
            file=None if self.files is None else self.files[image],
        )

    def class_examples(self, label: int, at_most: int = EXAMPLES_PER_CLASS) -> ClassExamples:
        """Choose right and wrong answers for images of one class.

        Args:
            label: The class.
            at_most: Largest number of each.

        Returns:
            Right answers of every degree of certainty, and the most probable wrong ones.
        """
        of_class = self.labels == label
        right = self._by_confidence(of_class & self.is_right)
        wrong = self._by_confidence(of_class & ~self.is_right)
        return ClassExamples(
            self.class_names[label],
            tuple(self.answer(image) for image in evenly_spaced(right, at_most)),
            tuple(self.answer(image) for image in wrong[:at_most]),
            len(wrong),
        )

    def least_certain(self, at_most: int = LEAST_CERTAIN) -> tuple[Answer, ...]:
        """Choose the images whose two most probable classes are the closest.

        Args:
            at_most: Largest number of images.

        Returns:
            The answers, the least certain first. Images without an answer are not among them.
        """
        if self.top_probabilities.shape[1] < 2:
            return ()
        margin = self.top_probabilities[:, 0] - self.top_probabilities[:, 1]
        has_answer = (self.classes >= 0).nonzero().flatten()
        order = has_answer[margin[has_answer].argsort(stable=True)][:at_most]
        return tuple(self.answer(image) for image in order.tolist())

    def typical_images(self, count: int) -> list[int]:
        """Choose images of middle confidence, right or wrong, of the most frequent classes.

        Args:
            count: Largest number of images, at least 1.

        Returns:
            Their indices in the order of the classes. All classes that are chosen have about equally many.
        """
        frequencies = torch.bincount(self.labels, minlength=len(self.class_names))
        present = int((frequencies > 0).sum())
        labels = frequencies.argsort(descending=True, stable=True)[: min(count, present)].sort().values
        per_class = max(1, count // len(labels))
        images = []
        for label in labels.tolist():
            ordered = self._by_confidence(self.labels == label)
            images += [ordered[(2 * place + 1) * len(ordered) // (2 * per_class)] for place in range(per_class)]
        return list(dict.fromkeys(images))

    def _by_confidence(self, selected: Tensor) -> list[int]:
        """Return the indices of the selected images, the most confident first."""
        indices: Int[Tensor, " selected"] = selected.nonzero().flatten()
        return indices[self.confidence[indices].argsort(descending=True, stable=True)].tolist()


def evenly_spaced(values: Sequence[int], at_most: int) -> list[int]:
    """Choose values at equal distances, with the first and the last.

    Args:
        values: The values.
        at_most: Largest number of values to choose, at least 2.

    Returns:
        The chosen values in their order.

    Example:
        >>> evenly_spaced([10, 11, 12, 13, 14], 3), evenly_spaced([10, 11], 3)
        ([10, 12, 14], [10, 11])
    """
    if len(values) <= at_most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (at_most - 1))] for place in range(at_most)]
