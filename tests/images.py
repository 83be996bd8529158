"""Folders of small images to test with."""

import numpy as np
from PIL import Image


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def fill(folder, counts, size=(12, 12), seed=0):
    """Images whose mean grows with the class."""
    rng = np.random.default_rng(seed)
    for label, (name, count) in enumerate(counts.items()):
        for number in range(count):
            save(folder / name / f"{number:03d}.png", (rng.integers(0, 60, size) + 60 * label).astype(np.uint8))
    return folder
