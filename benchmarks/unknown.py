"""Compare methods that tell images of unknown classes, and images that show nothing known, from known images.

    python -m benchmarks.unknown --data-dir data/ --output results/unknown.csv

One network per data set and seed is trained on some of the classes, and saved with what it computes from all images in
``--networks``, so that all methods are compared on the same numbers. Columns, in per cent:

* ``unseen A`` to ``unseen C``: area under the ROC curve between known test images and images of held-out classes.
  Methods and settings were chosen on A and B. ``distant C`` has the classes of C whose group, the first word of the
  name, is that of no known class. Steel has too few classes for C.
* ``uniform`` to ``digits``: share of these images that are rejected when 95 % of the known test images are accepted.
* ``accepted``, ``rejected B``, ``rejected C``: shares of known test images that are accepted and of unseen images that
  are rejected, with the limit that validation images set.

Rows that the output file already contains are not measured again. The means over seeds are written as a Markdown table
beside it.
"""

import argparse
import csv
import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import load_file, save
from torch import Tensor

from benchmarks.open_sets import OPEN_SETS
from benchmarks.resumed_table import measure_rows, provenance
from tigranet.atomic_files import atomic_binary_write, atomic_write
from tigranet.evaluation.unknown.contrast import ContrastRange
from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.energy import Energy
from tigranet.evaluation.unknown.known_scores import KnownScores
from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.max_logit import MaxLogit
from tigranet.evaluation.unknown.nearest_neighbours import NearestNeighbours
from tigranet.evaluation.unknown.novelty import NoveltyDetector, measure_images
from tigranet.evaluation.unknown.relative_mahalanobis import RelativeMahalanobis
from tigranet.evaluation.unknown.representation import Representation, known_images, represent
from tigranet.evaluation.unknown.softmax_probability import SoftmaxProbability
from tigranet.evaluation.unknown.virtual_logit import VirtualLogit
from tigranet.model import TIGraNet
from tigranet.workflows.train import train

KEYS = ("data", "network", "size", "seed", "method")
PYRAMID = "MC[16,3]-D-R[12]-D-MC[32,3]-R[24]-MC[64,3]-S[4]-FC[64]"
NETWORKS = {"pyramid": (PYRAMID, 64), "oriented-small": ("oriented-small", 48)}
"""By name: the architecture, and the side length of the images."""
PUBLISHED: dict[str, type[Detector]] = {
    "softmax probability": SoftmaxProbability,
    "max logit": MaxLogit,
    "energy": Energy,
    "Mahalanobis": Mahalanobis,
    "relative Mahalanobis": RelativeMahalanobis,
    "nearest neighbours": NearestNeighbours,
    "ViM": VirtualLogit,
}
WITHOUT_CONTRAST, CHOSEN = "distances and probability", "tigranet"
METHODS = (*PUBLISHED, WITHOUT_CONTRAST, CHOSEN)
SHARE = 0.95
UNRELATED = ("uniform", "gaussian", "blank", "other set", "digits")
MEASUREMENTS = "measurements.safetensors"


def main() -> None:
    """Measure all methods that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--data", nargs="+", choices=OPEN_SETS, default=list(OPEN_SETS))
    parser.add_argument("--network", nargs="+", choices=NETWORKS, default=["pyramid"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--networks", type=Path, default=Path("build/unknown"), help="Folder of trained networks.")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    @cache
    def measured(name: str, network: str, seed: int) -> tuple[TIGraNet, dict[str, Tensor]]:
        return measured_network(name, network, seed, arguments.data_dir, arguments.networks)

    def run(name: str, network: str, size: int, seed: int, method: str) -> dict[str, Any]:
        return compare(*measured(name, network, seed), method)

    jobs = (
        (name, network, NETWORKS[network][1], seed, method)
        for network, seed, name, method in itertools.product(
            arguments.network, range(arguments.seeds), arguments.data, arguments.methods
        )
    )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    measure_rows(arguments.output, KEYS, jobs, run)
    write_means(arguments.output)


def measured_network(
    name: str, network: str, seed: int, data_dir: Path, networks: Path
) -> tuple[TIGraNet, dict[str, Tensor]]:
    """Train a network and apply it to all images, or load both if that was done before."""
    architecture, size = NETWORKS[network]
    folder = networks / f"{name}-{network}-{seed}"
    if (folder / MEASUREMENTS).exists():
        return TIGraNet.from_pretrained(folder), load_file(folder / MEASUREMENTS)
    images = OPEN_SETS[name](seed, data_dir, size)
    if not (folder / "model.safetensors").exists():
        console = Console(stderr=True)
        train(images.data, architecture=architecture, seed=seed, console=console).network.save_pretrained(folder)
    net = TIGraNet.from_pretrained(folder)
    parts = {"train": images.data.train, "validation": images.data.validation, "test": images.data.test}
    measurements = {part: measure_images(net, content.images) for part, content in parts.items()}
    measurements |= {f"{part} labels": content.labels for part, content in parts.items()}
    for part, content in (images.unseen | images.unrelated).items():
        measurements[part] = measure_images(net, content)
    with atomic_binary_write(folder / MEASUREMENTS) as file:
        file.write(save(measurements))
    return net, measurements


def scorer(
    method: str, net: TIGraNet, measurements: dict[str, Tensor], validation: Representation
) -> Callable[[Representation], Tensor]:
    """Fit a method to the training images, and return its scores as a function."""
    known = known_images(net, measurements["train"], measurements["train labels"])
    if method in PUBLISHED:
        return PUBLISHED[method].fit(known, validation).scores
    detector = DistanceAndProbability.fit(known, validation).rounded()
    if method == WITHOUT_CONTRAST:
        return detector.scores
    contrast = ContrastRange.measure(torch.cat([known.images.contrast, validation.contrast]))
    return NoveltyDetector(detector, KnownScores(tuple(detector.scores(validation).tolist())), contrast).novelty


def compare(net: TIGraNet, measurements: dict[str, Tensor], method: str) -> dict[str, Any]:
    """Return the columns of one method."""
    labels = measurements["test labels"]
    images = {part: represent(net)(rows) for part, rows in measurements.items() if not part.endswith("labels")}
    scores_of = scorer(method, net, measurements, images["validation"])
    scores = {part: scores_of(content) for part, content in images.items() if len(content.logits)}
    known = scores["test"]
    (other_set,) = scores.keys() & set(OPEN_SETS)
    scores["other set"] = scores[other_set]
    limit = known.sort().values[-(-int(SHARE * 100) * len(known) // 100) - 1]
    stored_limit = KnownScores(tuple(scores["validation"].tolist())).limit(SHARE)
    row: dict[str, Any] = {
        "accuracy": _per_cent(images["test"].logits.argmax(1) == labels),
    }
    for part in ("A", "B", "C", "distant C"):
        name = part if part.startswith("distant") else f"unseen {part}"
        row[name] = round(100 * area_under_curve(known, scores[part]), 1) if part in scores else None
    row |= {part: _per_cent(scores[part] > limit) for part in UNRELATED}
    row["accepted"] = _per_cent(known <= stored_limit)
    for part in ("B", "C"):
        row[f"rejected {part}"] = _per_cent(scores[part] > stored_limit) if part in scores else None
    return row


def area_under_curve(known: Tensor, unknown: Tensor) -> float:
    """Return the probability that an unknown image has a higher score than a known one; equal scores count half."""
    higher, equal = unknown[:, None] > known[None], unknown[:, None] == known[None]
    return float(higher.double().mean() + equal.double().mean() / 2)


def write_means(table: Path) -> None:
    """Write the means over seeds as a Markdown table, beside the CSV file."""
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["data"], row["network"], row["method"]), []).append(row)
    columns = [name for name in rows[0] if name not in (*KEYS, *provenance())]
    lines = ["# Unknown images, per cent, means over seeds", ""]
    lines.append("| " + " | ".join(("data", "network", "method", *columns, "seeds")) + " |")
    lines.append("| " + " | ".join(["---"] * (len(columns) + 4)) + " |")
    for (name, network, method), group in sorted(groups.items(), key=lambda item: item[0][:2]):
        values = [[float(row[column]) for row in group if row[column]] for column in columns]
        means = (f"{sum(numbers) / len(numbers):.1f}" if numbers else "" for numbers in values)
        lines.append("| " + " | ".join((name, network, method, *means, str(len(group)))) + " |")
    with atomic_write(table.with_suffix(".md")) as file:
        file.write("\n".join(lines) + "\n")


def _per_cent(values: Tensor) -> float:
    return round(100 * float(values.double().mean()), 1)


if __name__ == "__main__":
    main()
