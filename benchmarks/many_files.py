"""Time and memory of listing and classifying a folder of 100,000 small images, 1 % of which are unreadable.

    python -m benchmarks.many_files --count 100000 --output results/many-files.json

The benchmark creates the folder, lists it, and runs 'tigranet predict' on it. It also runs 'tigranet predict' on one
image, to measure the memory of the model.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import image_files
from tigranet.evaluation.provenance import machine


def create_images(folder: Path, count: int) -> int:
    """Write 20x20 images of ten classes and return the number of unreadable files."""
    rng = np.random.default_rng(0)
    unreadable = 0
    for number in range(count):
        path = folder / f"class {number % 10}" / f"{number:06d}.png"
        if number < 10:
            path.parent.mkdir(parents=True)
        Image.fromarray(rng.integers(0, 256, (20, 20), dtype=np.uint8)).save(path)
        if number % 100 == 99:
            content = path.read_bytes()
            path.write_bytes((b"", content[: len(content) // 2], b"no image at all")[unreadable % 3])
            unreadable += 1
    return unreadable


def predict(model: Path, images: Path, table: Path) -> tuple[float, int, int]:
    """Run ``tigranet predict`` and return its seconds, its peak memory in bytes and its number of skipped files."""
    command = [sys.executable, "-c", PREDICT, "predict", str(model), str(images), "--csv", str(table)]
    start = perf_counter()
    process = subprocess.run(command, check=True, capture_output=True, text=True, errors="surrogateescape")
    lines = process.stderr.splitlines()
    peak = int(lines[-1].removeprefix("peak "))
    return perf_counter() - start, peak, sum(line.startswith("  ") for line in lines)


PREDICT = """
import atexit, resource, sys
from tigranet.cli import main
peak = lambda: print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
atexit.register(peak)
main()
"""


def main() -> None:
    """Run the benchmark and print or save its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, model = Path(temporary, "photos"), Path(temporary, "model")
        unreadable = create_images(folder, arguments.count)
        start = perf_counter()
        listed = sum(1 for _ in image_files(folder))
        seconds_to_list = perf_counter() - start
        TIGraNet("paper-small", 10, image_size=20).save_pretrained(model)
        _, one_image_peak, _ = predict(model, next(image_files(folder)), Path(temporary, "one.csv"))
        seconds, peak, skipped = predict(model, folder, Path(temporary, "all.csv"))
        rows = Path(temporary, "all.csv").read_bytes().count(b"\n") - 1
    assert (listed, rows, skipped) == (arguments.count, arguments.count - unreadable, unreadable)
    results = {
        "command": f"python -m benchmarks.many_files --count {arguments.count}",
        "files": listed,
        "bad files, all left out and named": skipped,
        "seconds to list": round(seconds_to_list, 2),
        "seconds to predict": round(seconds, 1),
        "memory with one image, MiB": one_image_peak >> 20,
        "memory with all, MiB": peak >> 20,
        "memory above the model's own, MiB": (peak - one_image_peak) >> 20,
        "machine": machine(),
    }
    print(json.dumps(results, indent=2))
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
