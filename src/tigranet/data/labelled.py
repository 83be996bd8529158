"""Images with their classes, and a data set of them."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.transforms import ROTATED, Isometry


class Labelled(NamedTuple):
    """Images in [0, 1] and the class of each."""

    images: Float[Tensor, "count maps height width"]
    labels: Int[Tensor, " count"]
    weights: Float[Tensor, " count"] | None = None
    """How much each image counts in training; all the same if None."""

    def take(self, indices: Int[Tensor, " chosen"] | list[int]) -> "Labelled":
        """Some of them."""
        weights = None if self.weights is None else self.weights[indices]
        return Labelled(self.images[indices], self.labels[indices], weights)


@dataclass(frozen=True)
class DataSet:
    """Upright images to train, validate and test with, and how the test images are moved for the test."""

    name: str
    class_names: tuple[str, ...]
    train: Labelled
    validation: Labelled
    test: Labelled
    moved: Isometry = ROTATED
