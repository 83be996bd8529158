"""Write folders of small image files for tests."""

import numpy as np
from PIL import Image


def save(path, array):
    """Save an array as an image file, and create its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def fill(folder, counts, size=(12, 12), seed=0):
    """Save ``counts[name]`` random grey images per class. The mean brightness increases with the class."""
    rng = np.random.default_rng(seed)
    for label, (name, count) in enumerate(counts.items()):
        for number in range(count):
            save(folder / name / f"{number:03d}.png", (rng.integers(0, 60, size) + 60 * label).astype(np.uint8))
    return folder
