"""Labelled images, and a data set of three parts."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.data.duplicates import DuplicateCounts

UPRIGHT = Isometry()
"""No movement."""


class LabelledImages(NamedTuple):
    """Images with their labels."""

    images: Float[Tensor, "count maps height width"]
    """Pixels in [0, 1]."""
    labels: Int[Tensor, " count"]
    """Position of the class of each image among the class names."""
    weights: Float[Tensor, " count"] | None = None
    """Weight of each image in the training loss; None for equal weights."""

    def take(self, indices: Int[Tensor, " selected"] | list[int]) -> "LabelledImages":
        """Select images.

        Args:
            indices: Positions of the images, in the order of the result.

        Returns:
            The selected images with their labels and weights.
        """
        weights = None if self.weights is None else self.weights[indices]
        return LabelledImages(self.images[indices], self.labels[indices], weights)

    def to(self, device: torch.device) -> "LabelledImages":
        """Copy the tensors to a device.

        Args:
            device: Target device.

        Returns:
            The same images on ``device``.
        """
        weights = None if self.weights is None else self.weights.to(device)
        return LabelledImages(self.images.to(device), self.labels.to(device), weights)

    def balanced(self) -> "LabelledImages":
        """Give every class the same total weight, regardless of its number of images.

        Returns:
            The same images with new weights. The sum of all weights does not change.

        Example:
            >>> images = LabelledImages(torch.zeros(3, 1, 2, 2), torch.tensor([0, 0, 1]))
            >>> images.balanced().weights
            tensor([0.7500, 0.7500, 1.5000])
        """
        weights = torch.ones(len(self.labels)) if self.weights is None else self.weights
        class_weights = weights.new_zeros(int(self.labels.max()) + 1).index_add(0, self.labels, weights)
        factors = weights.sum() / (class_weights > 0).sum() / class_weights[self.labels].clamp(min=1e-30)
        return self._replace(weights=weights * factors)


@dataclass(frozen=True)
class DataSet:
    """Images for training, validation and testing."""

    name: str
    """Name for reports and files."""
    class_names: tuple[str, ...]
    """Name of each class, in the order of the labels."""
    train: LabelledImages
    """Training images."""
    validation: LabelledImages
    """Validation images. There may be none."""
    test: LabelledImages
    """Test images, before ``test_motion``. There may be none, and then no accuracy on new images can be measured."""
    test_motion: Isometry = ROTATED
    """Random movement that is applied to the test images."""
    test_files: tuple[str, ...] | None = None
    """Paths of the test images, if they were read from files."""
    test_positions: Int[Tensor, " test"] | None = None
    """Positions of the test images among all readable images of a user's folder or file, whatever their size."""
    duplicates: DuplicateCounts | None = None
    """Images that occur more than once; None if this was not examined, as for named data sets."""
    training_motion: Isometry = UPRIGHT
    """Random movement that all images have already, the training images included. The default is none."""
    is_split_at_random: bool = False
    """Whether the three parts were drawn at random from images without parts, so that they may be drawn again."""
    groups: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None = None
    """Group of each training, validation and test image, if there are groups."""
    is_upright: bool = False
    """Whether it is known that all images are upright, apart from ``training_motion``. Images of a user may have any
    orientation, and some, such as microscopic images, have no natural one."""

    @property
    def orientation(self) -> str:
        """How the images are oriented: ``upright``, ``rotated`` or another movement, or empty if it is not known."""
        return str(self.training_motion) if self.is_upright or self.training_motion != UPRIGHT else ""

    @property
    def unmoved(self) -> str:
        """What to call images that are not moved for a test: ``upright`` where that is known, or ``as they are``."""
        return self.orientation if self.orientation == str(UPRIGHT) else "as they are"

    @property
    def untested_classes(self) -> tuple[str, ...]:
        """Names of the classes that have no test images."""
        tested_labels = set(self.test.labels.tolist())
        return tuple(name for label, name in enumerate(self.class_names) if label not in tested_labels)

    def require_test_images(self) -> LabelledImages:
        """Return the test images, or refuse a data set that has none.

        Returns:
            The test images, at least one.

        Raises:
            ValueError: If there are no test images.
        """
        if not len(self.test.labels):
            raise ValueError(
                f"{self.name} has no test images: put some into the part test, or leave out the parts, so that the "
                "test images are drawn at random"
            )
        return self.test
