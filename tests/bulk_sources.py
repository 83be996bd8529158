"""The same small images as a folder, a tar file and Parquet files, for tests of bulk predictions."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tigranet import TIGraNet

BAD = 3
"""Number of the image that is not an image."""


def contents(count: int) -> dict[str, bytes]:
    """Return image files by name. One of them is damaged."""
    rng = np.random.default_rng(0)
    files = {}
    for number in range(count):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (12, 12), dtype=np.uint8)).save(file, "PNG")
        files[f"{number:04d}.png"] = file.getvalue()
    return files | ({f"{BAD:04d}.png": b"not an image"} if count > BAD else {})


def write_folder(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    for name, content in contents(count).items():
        (folder / name).write_bytes(content)
    return folder


def write_tar(path: Path, count: int) -> Path:
    """Write a shard as WebDataset does: each image is followed by a file with its class."""
    with tarfile.open(path, "w") as archive:
        for name, content in contents(count).items():
            for member, data in ((name, content), (name.replace(".png", ".cls"), b"0")):
                entry = tarfile.TarInfo(member)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return path


def write_parquet(path: Path, count: int, rows_per_group: int = 4) -> Path:
    files = contents(count)
    table = pa.table({"image": pa.array(list(files.values()), pa.binary()), "path": list(files)})
    pq.write_table(table, path, row_group_size=rows_per_group)
    return path


def save_model(folder: Path, num_classes: int = 3) -> Path:
    TIGraNet("SC[2,2]-S[2]", num_classes, image_size=12).save_pretrained(folder)
    return folder


def read_answers(folder: Path) -> list[dict[str, object]]:
    """Return all rows, and check them against the manifest."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    rows = pq.read_table(folder).to_pylist()
    assert manifest["images"] == len(rows) == sum(part["images"] for part in manifest["parts"])
    assert manifest["unreadable"] == sum(row["error"] is not None for row in rows)
    assert {part["file"] for part in manifest["parts"]} == {path.name for path in folder.glob("*.parquet")}
    return rows


def names_of(rows: list[dict[str, object]]) -> list[str]:
    return [str(row["path"]).rsplit("/", 1)[-1] for row in rows]
