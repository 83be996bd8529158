"""Cost of shards: writing them, reading random batches from them, and the memory of their index.

    python -m benchmarks.shards --output results/shards.md

Times are processor times of one process, because other programs may run beside it.
"""

import argparse
import gc
import tempfile
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import torch
from PIL import Image

from tigranet.data.shards.shard_files import ShardIndex, read_index, read_manifest, shard_name, write_index
from tigranet.data.shards.stored_images import StoredImages
from tigranet.data.user_data import load_user_data
from tigranet.evaluation.provenance import machine
from tigranet.workflows.shard_images import write_shards

SIDES = (64, 128)
"""Side lengths of the JPEG files: stored without scaling, and scaled to 64 pixels."""
BATCH = 50


def write_photographs(folder: Path, count: int, side: int) -> None:
    """Write smooth random JPEG files of two classes."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = folder / f"class {number % 2}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8))
        small.resize((side, side), Image.Resampling.BICUBIC).save(path, quality=90)


def measure(folder: Path, count: int, side: int) -> str:
    """Write and read images of one size, and return a row of the table."""
    write_photographs(folder / "photos", count, side)
    start = process_time()
    shards = write_shards(folder / "photos", folder / "shards", size=64, workers=1).folder
    writing = 1000 * (process_time() - start) / count
    images = load_user_data(shards)[0].train.images
    order = torch.randperm(len(images)).split(BATCH)
    start = process_time()
    for rows in order:
        images[rows]
    reading = 1000 * (process_time() - start) / len(images)
    num_bytes = sum(path.stat().st_size for path in shards.glob("shard-*.tar")) / count
    bits = set(images.reader.rows["bits"].tolist())
    return f"| {side} | {max(bits)} | {writing:.2f} | {reading:.3f} | {num_bytes / 1000:.1f} |"


def resident_bytes(name: str = "VmRSS") -> int:
    """Return the memory of this process that is in use now, or the largest one so far (VmHWM)."""
    gc.collect()
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) * 1024


def index_bytes(folder: Path, images: int) -> tuple[float, float]:
    """Return the memory per image of a data set in shards, afterwards and at most while it is loaded.

    The shards are copies of a real index with other hashes.
    """
    manifest = read_manifest(folder)
    index = read_index(folder, 0, manifest.plan)
    assert index is not None
    rng, count = np.random.default_rng(0), len(index.rows)
    summaries = []
    for number in range(images // count):
        rows = index.rows.copy()
        rows["position"] += number * count
        for field in ("content", "picture"):
            rows[field] = rng.integers(0, 2**63, count)
        summaries.append(index.summary._replace(number=number))
        with (folder / shard_name(number)).open("wb") as file:
            file.truncate(index.summary.num_bytes)
        write_index(folder, manifest.plan, ShardIndex(summaries[-1], rows, index.names, None, ()))
    replace(manifest, images=len(summaries) * count, shards=tuple(summaries)).write(folder)
    before = resident_bytes()
    data = load_user_data(folder)[0]
    assert isinstance(data.train.images, StoredImages)
    count = sum(summary.images for summary in summaries)
    return (resident_bytes() - before) / count, (resident_bytes("VmHWM") - before) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=4096, help="number of images of each size")
    parser.add_argument("--index", type=int, default=1_000_000, help="number of images of the index")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary, str(side)) for side in SIDES]
        rows = [measure(folder, arguments.count, side) for folder, side in zip(folders, SIDES, strict=True)]
        index, peak = index_bytes(folders[0] / "shards", arguments.index)
    command = f"python -m benchmarks.shards --count {arguments.count} --index {arguments.index}"
    columns = (
        "side of the files, pixels",
        "bits per pixel",
        "writing, ms per image",
        "reading a random batch, ms per image",
    )
    lines = [
        "# Cost of shards",
        "",
        f"`{command}`, {machine()['cpu']}: grey JPEG files, stored with 64 pixels per side. Times are",
        "processor times of one process.",
        "",
        f"| {' | '.join(columns)} | KB per image |",
        "| ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
        f"Memory of a loaded data set of {arguments.index:,} images, without pixels: {index:.0f} bytes per image,",
        f"and at most {peak:.0f} while it is loaded.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
