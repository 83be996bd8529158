"""A small folder of synthetic images, so that no data set is needed."""

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("coarse", "middle", "fine")
"""Names of the classes: stripes of three widths."""


def write_images(folder: Path, per_class: int, size: int, seed: int = 0) -> None:
    """Write striped images of three classes, one sub-folder per class.

    Args:
        folder: The folder; it is created.
        per_class: Number of images per class.
        size: Side length in pixels.
        seed: Seed of the phases and the noise.
    """
    rng = np.random.default_rng(seed)
    columns = np.arange(size)
    for frequency, name in enumerate(CLASSES, start=1):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            stripes = 0.5 + 0.4 * np.sin(2 * np.pi * frequency * columns / 12 + rng.uniform(0, 2 * np.pi))
            pixels = np.broadcast_to(stripes, (size, size)) + rng.normal(0, 0.05, (size, size))
            levels = np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)
            Image.fromarray(levels).save(folder / name / f"{number:04d}.png")
