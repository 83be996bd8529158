"""The page of the measurements of ``benchmarks.small_folders``: means over draws, differences and times."""

import csv
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from tigranet.atomic_files import atomic_write

TARGET = 2.0
"""Points by which the default network is to be better than its rivals."""
TITLES = {
    "plankton": "plankton, 8 classes x 40",
    "steel": "steel defects, 6 classes",
    "eth80": "ETH-80, other objects, 8 classes",
    "digits": "digits, 10 classes",
}
MOVEMENTS = ("as they are", "rotated")

Row = dict[str, str]


def write_summary(path: Path) -> None:
    """Write a page beside the CSV file.

    Args:
        path: The measurements.
    """
    rows = list(csv.DictReader(path.read_text().splitlines()))
    rivals = [name.removesuffix(", epochs") for name in rows[0] if name.endswith(", epochs")]
    sets = {name: [row for row in rows if row["data"] == name] for name in dict.fromkeys(row["data"] for row in rows)}
    with atomic_write(path.with_suffix(".md")) as file:
        file.write("# Small folders: the default network and CNNs that are trained for the same time\n\n")
        file.write(
            f"`python -m benchmarks.small_folders --data-dir data/ --output results/{path.name} --workers N`\n\n"
        )
        file.write(introduction(rows))
        file.write(accuracy_table(sets, rivals))
        file.write(time_table(sets, rivals))
        file.write(setting(rows))


def introduction(rows: Sequence[Row]) -> str:
    """Return what was measured."""
    draws = len({row["seed"] for row in rows})
    return (
        f"Accuracy in per cent on test images that are in no training, mean and standard error over {draws} draws.\n"
        "A draw has its own training images, and its own classes of plankton. The standard error of a difference is\n"
        "that over draws. The rivals are trained on the same images, rotated at random and deformed as ours are, for\n"
        "as long as the default network, with a learning rate that falls to zero in that time. CNN is the plain CNN\n"
        "of `tigranet report`, with as many parameters as our network; ResNet has three residual blocks with batch\n"
        "normalisation. 'First answer' is the linear classifier that `tigranet train` fits before the training.\n\n"
        "The test images of plankton and digits were used for no choice. Those of steel and ETH-80 are drawn from the\n"
        "same images as the validation images that default networks were chosen with.\n"
    )


def accuracy_table(sets: dict[str, list[Row]], rivals: Sequence[str]) -> str:
    """Return the accuracies and the differences."""
    columns = ["data", "images", "test images are", "first answer", "ours", *rivals]
    columns += [title for rival in rivals for title in (f"ours - {rival}", f"{TARGET:g} points better")]
    lines = [_cells(columns), _cells(["---", "---:", "---", *["---:"] * (len(columns) - 3)])]
    for name, rows in sets.items():
        for movement in MOVEMENTS:
            cells = [TITLES[name], rows[0]["images"], movement]
            cells += [_mean(_values(rows, f"{method}, {movement}")) for method in ("first answer", "ours", *rivals)]
            for rival in rivals:
                difference = differences(rows, rival, movement)
                cells += [_mean(difference, sign="+"), "yes" if mean(difference) >= TARGET else "no"]
            lines.append(_cells(cells))
    return "\n## Accuracy\n\n" + "\n".join(lines) + "\n"


def differences(rows: Sequence[Row], rival: str, movement: str) -> list[float]:
    """Return by how much the default network is better than a rival in each draw, in points.

    Args:
        rows: The draws of one data set.
        rival: The rival.
        movement: ``as they are`` or ``rotated``.

    Returns:
        The differences.
    """
    ours, theirs = (_values(rows, f"{name}, {movement}") for name in ("ours", rival))
    return [a - b for a, b in zip(ours, theirs, strict=True)]


def time_table(sets: dict[str, list[Row]], rivals: Sequence[str]) -> str:
    """Return the times."""
    columns = ["data", "first answer, longest", "training", "longest", "in all, longest"]
    columns += [title for rival in rivals for title in (f"{rival}, training", "share of our time", "epochs")]
    lines = [_cells(columns), _cells(["---", *["---:"] * (len(columns) - 1)])]
    for name, rows in sets.items():
        training = _values(rows, "training, s")
        cells = [TITLES[name], f"{max(_values(rows, 'first answer, s')):.1f}", f"{mean(training):.1f}"]
        cells += [f"{max(training):.1f}", f"{max(_values(rows, 'in all, s')):.1f}"]
        for rival in rivals:
            theirs = _values(rows, f"{rival}, s")
            shares = [100 * a / b for a, b in zip(theirs, training, strict=True)]
            cells += [f"{mean(theirs):.1f}", f"{min(shares):.0f} to {max(shares):.0f} %"]
            cells += [f"{mean(_values(rows, f'{rival}, epochs')):.0f}"]
        lines.append(_cells(cells))
    text = "\n## Time\n\nSeconds on two cores. 'In all' is the first answer, the training, and what `tigranet train`\n"
    return (
        text + "does after it, without the start of the program and without test images.\n\n" + "\n".join(lines) + "\n"
    )


def setting(rows: Sequence[Row]) -> str:
    """Return networks, seeds, versions and machine."""
    networks = "; ".join(
        f"{name}: `{network}`, {parameters} parameters"
        for name, network, parameters in dict.fromkeys((row["data"], row["network"], row["parameters"]) for row in rows)
    )
    seeds = sorted({int(row["seed"]) for row in rows})
    machines = dict.fromkeys(f"{row['cpu']}, {row['threads']} threads" for row in rows)
    software = dict.fromkeys(f"tigranet {row['tigranet']}, PyTorch {row['torch']}" for row in rows)
    return (
        f"\n## Setting\n\n- Networks: {networks}.\n- Seeds: {', '.join(map(str, seeds))}.\n"
        f"- Software: {'; '.join(software)}.\n- Machine: {'; '.join(machines)} per training.\n"
    )


def _values(rows: Sequence[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def _mean(values: Sequence[float], sign: str = "") -> str:
    """Return mean and standard error."""
    error = f" ± {stdev(values) / sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{mean(values):{sign}.1f}{error}"


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
