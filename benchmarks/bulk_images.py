"""Parquet files with many small images, for measurements of bulk predictions."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

SIDE = 28
"""Side length of the images in pixels."""
DIFFERENT, ROWS_PER_FILE, ROWS_PER_GROUP = 512, 20_480, 512


def create_images(folder: Path, count: int, side: int = SIDE) -> Path:
    """Write Parquet files with the content of PNG files, which repeat, and with names, which do not.

    Args:
        folder: The folder to create.
        count: Number of images.
        side: Side length of the images in pixels.

    Returns:
        The folder.
    """
    folder.mkdir()
    rng = np.random.default_rng(0)
    files = []
    for _ in range(min(DIFFERENT, count)):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (side, side), dtype=np.uint8)).save(file, "PNG")
        files.append(file.getvalue())
    for start in range(0, count, ROWS_PER_FILE):
        numbers = range(start, min(start + ROWS_PER_FILE, count))
        contents = pa.array([files[number % len(files)] for number in numbers], pa.binary())
        table = pa.table({"image": contents, "path": [f"{number:09d}.png" for number in numbers]})
        pq.write_table(table, folder / f"{start:09d}.parquet", row_group_size=ROWS_PER_GROUP)
    return folder
