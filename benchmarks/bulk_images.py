"""Parquet files with many small images, for measurements of bulk predictions."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

SIDE = 28
"""Side length of the images in pixels."""
DIFFERENT, GROUPS_PER_FILE, ROWS_PER_GROUP = 500, 40, 512


def create_images(folder: Path, count: int, side: int = SIDE, rows_per_group: int = ROWS_PER_GROUP) -> Path:
    """Write Parquet files with the content of PNG files, which repeat, and with names, which do not.

    Args:
        folder: The folder to create.
        count: Number of images.
        side: Side length of the images in pixels.
        rows_per_group: Number of images in a row group. Parts consist of whole row groups.

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
    rows_per_file = GROUPS_PER_FILE * rows_per_group
    for start in range(0, count, rows_per_file):
        numbers = range(start, min(start + rows_per_file, count))
        contents = pa.array([files[number % len(files)] for number in numbers], pa.binary())
        table = pa.table({"image": contents, "path": [f"{number:09d}.png" for number in numbers]})
        pq.write_table(table, folder / f"{start:09d}.parquet", row_group_size=rows_per_group)
    return folder
