"""The page of the measurements of ``benchmarks.fine_tuning``: means over seeds, and gains over random weights."""

import csv
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from tigranet.atomic_files import atomic_write

Row = dict[str, str]

INTRODUCTION = """\
Accuracy in per cent on validation images, as they are / rotated at random: mean over seeds. A seed draws the training
images, and the classes of plankton. 'Gain' is the rotated accuracy minus that of random weights with all steps, with
its standard error over seeds. 'Rate' is the factor of the default learning rate. Starts: `plankton` are the classes of
plankton that are in no task, `photographs` is CIFAR-10 in grey, `steel` are the steel defects. No start has seen a
class of its task. Validation images only; those of steel are drawn from all 1,800 images, because it has so few.

"""


def write_summary(path: Path) -> None:
    """Write a page beside the CSV file.

    Args:
        path: The measurements.
    """
    rows = list(csv.DictReader(path.read_text().splitlines()))
    with atomic_write(path.with_suffix(".md")) as file:
        file.write("# Fine-tuning: starting from a trained network\n\n")
        file.write("    python -m benchmarks.starting_networks --data-dir data/ --output starts/ --workers 3\n")
        file.write("    python -m benchmarks.fine_tuning --data-dir data/ --starts-dir starts/ --workers 12 \\\n")
        file.write(f"        --output results/{path.name}\n\n")
        file.write(INTRODUCTION)
        file.write(table(rows))
        file.write(setting(rows))


def table(rows: Sequence[Row]) -> str:
    """Return the means, one line for each network, task, number of images, start, number of steps and rate."""
    columns = ["network", "task", "images", "start", "steps", "rate", "seeds", "accuracy", "gain"]
    lines = [_cells(columns), _cells(["---", "---", "---:", "---", "---:", "---:", "---:", "---:", "---:"])]
    tasks = dict.fromkeys((row["network"], row["data"], row["images"]) for row in rows)
    for task in sorted(tasks, key=lambda task: (task[0], task[1], int(task[2]))):
        of_task = [row for row in rows if (row["network"], row["data"], row["images"]) == task]
        baseline = {
            row["seed"]: float(row["rotated"]) for row in of_task if row["start"] == "random" and row["steps"] == "all"
        }
        for method in sorted(dict.fromkeys((row["start"], row["steps"], row["rate"]) for row in of_task), key=_order):
            chosen = [row for row in of_task if (row["start"], row["steps"], row["rate"]) == method]
            gains = [float(row["rotated"]) - baseline[row["seed"]] for row in chosen if row["seed"] in baseline]
            accuracy = " / ".join(
                f"{mean(float(row[name]) for row in chosen):.1f}" for name in ("as they are", "rotated")
            )
            gain = "" if method[:2] == ("random", "all") or not gains else mean_and_error(gains)
            steps = f"{mean(float(row['number of steps']) for row in chosen):.0f}"
            lines.append(_cells([*task, method[0], steps, method[2], str(len(chosen)), accuracy, gain]))
    return "\n".join(lines) + "\n"


def mean_and_error(values: Sequence[float]) -> str:
    """Return the mean with its sign, and the standard error of the mean if there are several values."""
    error = f" ± {stdev(values) / sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{mean(values):+.1f}{error}"


def setting(rows: Sequence[Row]) -> str:
    """Return seeds, versions and machine."""
    seeds = ", ".join(map(str, sorted({int(row["seed"]) for row in rows})))
    software = dict.fromkeys(f"tigranet {row['tigranet']}, PyTorch {row['torch']}" for row in rows)
    machines = dict.fromkeys(row["gpu"] or row["cpu"] for row in rows)
    return f"\nSeeds {seeds}; {'; '.join(software)}; {'; '.join(machines)}, shared by several trainings.\n"


def _order(method: tuple[str, str, str]) -> tuple[bool, str, str, float]:
    """Sort random weights before all starts, all steps before a quarter, and high rates before low ones."""
    start, steps, rate = method
    return start != "random", start, steps, -float(rate)


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
