"""Images with their classes, and a data set of them."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.augment.rigid import ROTATED, Isometry


class LabelledImages(NamedTuple):
    """Images in [0, 1] and the class of each."""

    images: Float[Tensor, "count maps height width"]
    labels: Int[Tensor, " count"]
    weights: Float[Tensor, " count"] | None = None
    """How much each image counts in training; all the same if None."""

    def take(self, indices: Int[Tensor, " chosen"] | list[int]) -> "LabelledImages":
        """Some of them."""
        weights = None if self.weights is None else self.weights[indices]
        return LabelledImages(self.images[indices], self.labels[indices], weights)

    def to(self, device: torch.device) -> "LabelledImages":
        """The same, on another device."""
        weights = None if self.weights is None else self.weights.to(device)
        return LabelledImages(self.images.to(device), self.labels.to(device), weights)

    def balanced(self) -> "LabelledImages":
        """The same, with all classes counting alike, however many images they have.

        >>> three = LabelledImages(torch.zeros(3, 1, 2, 2), torch.tensor([0, 0, 1]))
        >>> three.balanced().weights
        tensor([0.7500, 0.7500, 1.5000])
        """
        weights = torch.ones(len(self.labels)) if self.weights is None else self.weights
        of_class = weights.new_zeros(int(self.labels.max()) + 1).index_add(0, self.labels, weights)
        even = weights.sum() / (of_class > 0).sum() / of_class[self.labels].clamp(min=1e-30)
        return self._replace(weights=weights * even)


@dataclass(frozen=True)
class DataSet:
    """Upright images to train, validate and test with, and how the test images are moved for the test."""

    name: str
    class_names: tuple[str, ...]
    train: LabelledImages
    validation: LabelledImages
    test: LabelledImages
    test_motion: Isometry = ROTATED
    test_files: tuple[str, ...] | None = None
    """Where the images to test with came from, if they are files."""
