"""The description of a data set that is drawn at random from the images of a source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.data.dataset import UPRIGHT, DataSet, LabelledImages
from tigranet.data.sources.source import ImagePool, LabelledBytes, Source
from tigranet.data.splits import draw

CHUNK = 1024
"""Number of images that are moved at a time, so that little further memory is needed."""


def unchanged(images: Tensor) -> Tensor:
    """Return images as they are.

    Args:
        images: The images.

    Returns:
        The same images.
    """
    return images


@dataclass(frozen=True)
class NamedDataSet:
    """How a data set is drawn from a source."""

    about: str
    """One line about the data set."""
    source: Source
    """Where the images come from."""
    class_names: tuple[str, ...]
    """Names of the first classes of the source. Images of further classes are left out."""
    sizes: tuple[int, ...]
    """Numbers of training, validation and test images. The last is omitted if the source has its own test images."""
    whole_objects: bool = False
    """Draw objects with all their views. ``sizes`` are then numbers of objects per class."""
    stratified: bool = False
    """Draw every class in proportion to its number of images, and at least one image of it into every part. ``sizes``
    are then three numbers, and together they are all images."""
    frame: Callable[[Tensor], Tensor] = unchanged
    """Resize or pad the images."""
    training_motion: Isometry = UPRIGHT
    """Random movement that is applied once to every image of all parts, after ``frame``. The default leaves them
    upright."""
    test_motion: Isometry = ROTATED
    """Random movement that is applied to the test images when a network is tested."""
    is_upright: bool = True
    """Whether the images of the source are upright. Some have no natural orientation."""

    def load(self, name: str, seed: int, folder: Path) -> DataSet:
        """Read the source and draw the three parts.

        Args:
            name: Name of the data set.
            seed: Seed of the random draw, and of the angles and shifts of ``training_motion``.
            folder: Data folder of the source.

        Returns:
            The data set, a pure function of the seed and the files.
        """
        pool = self.source.load_pool(folder)
        generator = torch.Generator().manual_seed(seed)
        parts = [pool.images.take(part) for part in self._draw(pool, seed, generator)]
        if pool.test_images is not None:
            parts.append(pool.test_images.take(self._positions_of_classes(pool.test_images)))
        train, validation, test = (LabelledImages(self.frame(part.images), part.labels) for part in parts)
        if not pool.is_drawn:
            for part in (train, validation, test):
                _move(part.images, self.training_motion, generator)
        return DataSet(
            name,
            self.class_names,
            train,
            validation,
            test,
            test_motion=self.test_motion,
            training_motion=self.training_motion,
            is_upright=self.is_upright,
        )

    def _draw(self, pool: ImagePool, seed: int, generator: torch.Generator) -> Sequence[Tensor]:
        """Return the positions of the images of each part that comes from ``pool.images``."""
        if pool.is_drawn:
            return torch.arange(sum(self.sizes)).split(self.sizes)
        if self.whole_objects:
            return self._draw_objects(pool, generator)
        if self.stratified:
            return self._draw_stratified(pool, seed, generator)
        return self._draw_images(pool, generator)

    def _draw_images(self, pool: ImagePool, generator: torch.Generator) -> Sequence[Tensor]:
        positions = self._positions_of_classes(pool.images)
        return positions[torch.randperm(len(positions), generator=generator)[: sum(self.sizes)]].split(self.sizes)

    def _draw_stratified(self, pool: ImagePool, seed: int, generator: torch.Generator) -> Sequence[Tensor]:
        labels = pool.images.labels
        _, num_validation, num_test = self.sizes
        test, others = draw(labels, self.class_names, seed, num_test)
        validation, train = (others[part] for part in draw(labels[others], self.class_names, seed, num_validation))
        return [part[torch.randperm(len(part), generator=generator)] for part in (train, validation, test)]

    def _draw_objects(self, pool: ImagePool, generator: torch.Generator) -> Sequence[Tensor]:
        assert pool.objects is not None
        parts: list[list[Tensor]] = [[] for _ in self.sizes]
        for label in range(len(self.class_names)):
            objects = pool.objects[pool.images.labels == label].unique()
            shuffled = objects[torch.randperm(len(objects), generator=generator)]
            for part, part_objects in zip(parts, shuffled.split(self.sizes), strict=True):
                part.append(torch.nonzero(torch.isin(pool.objects, part_objects)).flatten())
        return [torch.cat(part) for part in parts]

    def _positions_of_classes(self, images: LabelledImages | LabelledBytes) -> Tensor:
        """Return the positions of the images that belong to ``class_names``."""
        return torch.nonzero(images.labels < len(self.class_names)).flatten()


def _move(images: Tensor, motion: Isometry, generator: torch.Generator) -> None:
    """Move images in place, each by its own random angle and shift."""
    if motion == UPRIGHT:
        return
    movements = motion.draw(len(images), generator)
    for start in range(0, len(images), CHUNK):
        rows = slice(start, start + CHUNK)
        images[rows] = motion.apply(images[rows], movements.select(rows))
