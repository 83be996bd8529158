"""Compare trainings on the colours of images with trainings on their luminance, by accuracy on validation images.

    python -m benchmarks.colors --data-dir data/ --workers 2 --output results/colors.csv

The networks are the fast defaults of a CPU with their recipes. No test image is used. Rows that the output file already
contains are not measured again.
"""

import argparse
import itertools
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.preset_search import run
from benchmarks.presets import SIDES
from benchmarks.resumed_table import measure_rows
from tigranet.choose_architecture import choose_preset
from tigranet.fine_tuning import start_name

KEYS = ("data", "images", "colours", "seed")
GREY_SETS = {"eth80-colour": "eth80", "photographs": "photographs-grey"}
"""Data sets in colour, with the names of the same images in grey."""


def measure(folder: Path, name: str, images: int, colors: str, seed: int) -> dict[str, Any]:
    """Train the fast default network on images in colour or in grey, and return its accuracies."""
    preset = choose_preset(images, SIDES[name], gpu=False)
    start = start_name(preset, images) if name != "photographs" else None
    network = preset if start is None else f"{preset} init={start}"
    return {"network": network} | run(folder, name if colors == "kept" else GREY_SETS[name], images, network, seed)


def main() -> None:
    """Measure all rows that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--images", type=int, nargs="+", default=[300])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = itertools.product(GREY_SETS, arguments.images, ("kept", "grey"), range(arguments.seeds))
    measure_rows(arguments.output, KEYS, jobs, partial(measure, arguments.data_dir), arguments.workers)


if __name__ == "__main__":
    main()
