"""A folder of 100,000 small images, one in a hundred of them bad: how long it takes to list, and what predicting takes.

    python -m benchmarks.many_files --count 100000 --output results/many-files.json

It makes the folder, lists it, and runs 'tigranet predict' on it, and on one image alone for the memory of the model.
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


def make(folder: Path, count: int) -> int:
    """Ten classes of 20x20 images; how many of them are bad."""
    rng = np.random.default_rng(0)
    bad = 0
    for number in range(count):
        path = folder / f"class {number % 10}" / f"{number:06d}.png"
        if number < 10:
            path.parent.mkdir(parents=True)
        Image.fromarray(rng.integers(0, 256, (20, 20), dtype=np.uint8)).save(path)
        if number % 100 == 99:
            content = path.read_bytes()
            path.write_bytes((b"", content[: len(content) // 2], b"no image at all")[bad % 3])
            bad += 1
    return bad


def predict(model: Path, images: Path, table: Path) -> tuple[float, int, int]:
    """Seconds, the most memory in bytes, and the number of files that were said to be left out."""
    command = [sys.executable, "-c", PREDICT, "predict", str(model), str(images), "--csv", str(table)]
    start = perf_counter()
    told = subprocess.run(command, check=True, capture_output=True, text=True, errors="surrogateescape")
    lines = told.stderr.splitlines()
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        folder, model = Path(room, "photos"), Path(room, "model")
        bad = make(folder, given.count)
        start = perf_counter()
        listed = sum(1 for _ in image_files(folder))
        seconds_to_list = perf_counter() - start
        TIGraNet("paper-small", 10, image_size=20).save_pretrained(model)
        one = next(image_files(folder))
        _, alone, _ = predict(model, one, Path(room, "one.csv"))
        seconds, peak, left_out = predict(model, folder, Path(room, "all.csv"))
        rows = Path(room, "all.csv").read_bytes().count(b"\n") - 1
    assert (listed, rows, left_out) == (given.count, given.count - bad, bad)
    found = {
        "command": f"python -m benchmarks.many_files --count {given.count}",
        "files": listed,
        "bad files, all left out and named": left_out,
        "seconds to list": round(seconds_to_list, 2),
        "seconds to predict": round(seconds, 1),
        "memory with one image, MiB": alone >> 20,
        "memory with all, MiB": peak >> 20,
        "memory above the model's own, MiB": (peak - alone) >> 20,
        "machine": machine(),
    }
    print(json.dumps(found, indent=2))
    if given.output:
        given.output.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
