"""The description of a data set that is drawn at random from the images of a source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tigranet.data.augment.rigid import ROTATED, Isometry
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.data.sources.source import ImagePool, Source


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
    frame: Callable[[Tensor], Tensor] = unchanged
    """Resize or pad the images."""
    test_motion: Isometry = ROTATED
    """Random movement that is applied to the test images."""

    def load(self, name: str, seed: int, folder: Path) -> DataSet:
        """Read the source and draw the three parts.

        Args:
            name: Name of the data set.
            seed: Seed of the random draw.
            folder: Data folder of the source.

        Returns:
            The data set, a pure function of the seed and the files.
        """
        pool = self.source.load_pool(folder)
        generator = torch.Generator().manual_seed(seed)
        indices = self._draw_objects(pool, generator) if self.whole_objects else self._draw_images(pool, generator)
        parts = [pool.images.take(part) for part in indices]
        if pool.test_images is not None:
            parts.append(pool.test_images.take(self._positions_of_classes(pool.test_images)))
        train, validation, test = (LabelledImages(self.frame(part.images), part.labels) for part in parts)
        return DataSet(name, self.class_names, train, validation, test, self.test_motion)

    def _draw_images(self, pool: ImagePool, generator: torch.Generator) -> Sequence[Tensor]:
        positions = self._positions_of_classes(pool.images)
        return positions[torch.randperm(len(positions), generator=generator)[: sum(self.sizes)]].split(self.sizes)

    def _draw_objects(self, pool: ImagePool, generator: torch.Generator) -> Sequence[Tensor]:
        assert pool.objects is not None
        parts: list[list[Tensor]] = [[] for _ in self.sizes]
        for label in range(len(self.class_names)):
            objects = pool.objects[pool.images.labels == label].unique()
            shuffled = objects[torch.randperm(len(objects), generator=generator)]
            for part, part_objects in zip(parts, shuffled.split(self.sizes), strict=True):
                part.append(torch.nonzero(torch.isin(pool.objects, part_objects)).flatten())
        return [torch.cat(part) for part in parts]

    def _positions_of_classes(self, images: LabelledImages) -> Tensor:
        """Return the positions of the images that belong to ``class_names``."""
        return torch.nonzero(images.labels < len(self.class_names)).flatten()
