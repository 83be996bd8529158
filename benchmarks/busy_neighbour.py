"""``python -m benchmarks.busy_neighbour``: a training beside a process that keeps one core busy, and its page faults.

    python -m benchmarks.busy_neighbour --before OTHER_CHECKOUT --csv results/busy-neighbour.csv

Each measurement is a new process without settings for threads or memory, as a user starts it. It trains with ``fit``,
once with this package imported before PyTorch, as by the command line and the estimator, and once after it. In every
round all of them run once alone and once beside a process that computes without pause. The result is the median over
the rounds: milliseconds per training image, processor time of all threads per image, page faults per image, and the
largest memory of the process. Run it on a machine that has nothing else to do; the load average is printed.
"""

import argparse
import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.user_process import HERE, run_without_settings

NEIGHBOUR = "while True: pass"
WORKER = """
import json, resource, sys, time
if sys.argv[1] == "torch": import torch
import tigranet
import torch
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.training import Hardware, Recipe, fit

architecture, (size, batch, steps) = sys.argv[2], map(int, sys.argv[3:])
WARM_UP = 3
moments = []

class Recorder(TIGraNet):
    def forward(self, *arguments):
        moments.append((time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt))
        return super().forward(*arguments)

torch.manual_seed(0)
data = LabelledImages(torch.rand(batch, 1, size, size), torch.arange(batch) % 5)
recipe = Recipe(epochs=WARM_UP + steps + 1, batch_size=batch, learning_rate=0.001)
fit(Recorder(architecture, 5), data, None, recipe, hardware=Hardware(accelerator="cpu"))
seconds, processor_seconds, faults = (
    (end - start) / (batch * steps) for start, end in zip(moments[WARM_UP], moments[WARM_UP + steps])
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"ms": 1e3 * seconds, "processor_ms": 1e3 * processor_seconds, "faults": faults, "peak_mib": peak}))
"""


def train(checkout: Path, first_import: str, arguments: list[str]) -> dict[str, float]:
    """Train in a new process and return its times and page faults per image, and its peak memory.

    Args:
        checkout: The folder of the repository.
        first_import: ``tigranet`` or ``torch``.
        arguments: Preset, side length, batch size and number of steps.
    """
    return run_without_settings(["-c", WORKER, first_import, *arguments], checkout)


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """Run a process that keeps one core busy within the block."""
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(before: Path | None, arguments: list[str], rounds: int) -> list[dict[str, Any]]:
    """Train with each version, alone and beside a busy process, in turns.

    Args:
        before: Another checkout to compare with, if any.
        arguments: Preset, side length, batch size and number of steps.
        rounds: Number of trainings of each kind.

    Returns:
        One row per version with the medians.
    """
    versions = {"this": (HERE, "tigranet"), "this, PyTorch imported first": (HERE, "torch")}
    if before:
        versions = {"before": (before, "tigranet")} | versions
    runs: dict[tuple[str, int], list[dict[str, float]]] = {(name, n): [] for name in versions for n in (0, 1)}
    for _ in range(rounds):
        for neighbours in (0, 1):
            for name, (checkout, first_import) in versions.items():
                with busy_neighbour() if neighbours else nullcontext():
                    result = train(checkout, first_import, arguments)
                runs[name, neighbours].append(result)
                print(f"{name:30} {neighbours} neighbours {result['ms']:8.2f} ms per image", flush=True)
    rows = []
    for name in versions:
        alone, beside = ({key: median(run[key] for run in runs[name, n]) for key in runs[name, n][0]} for n in (0, 1))
        rows.append(
            {
                "version": name,
                "alone_ms": round(alone["ms"], 2),
                "with_neighbour_ms": round(beside["ms"], 2),
                "ratio": round(beside["ms"] / alone["ms"], 2),
                "processor_ms": round(alone["processor_ms"], 2),
                "page_faults_per_image": round(alone["faults"], 1),
                "peak_mib": round(alone["peak_mib"]),
            }
        )
    return rows


def main() -> None:
    """Measure, print, and write the rows to a CSV file where one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="Folder of another checkout to compare with.")
    parser.add_argument("--preset", default="oriented-small")
    parser.add_argument("--size", type=int, default=64, help="Side length in pixels.")
    parser.add_argument("--batch", type=int, default=50, help="Batch size.")
    parser.add_argument("--steps", type=int, default=15, help="Number of measured training steps.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", type=Path, help="Write the rows to this file.")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the first training")
    arguments = [options.preset, str(options.size), str(options.batch), str(options.steps)]
    rows = measure(options.before, arguments, options.rounds)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
