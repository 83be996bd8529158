"""Compare trainings that start from saved networks with trainings that start from random weights.

    python -m benchmarks.fine_tuning --data-dir data/ --output results/fine-tuning.csv

The data sets are reduced to 50 to 1,000 training images. 'none' starts the default network from random weights;
a name starts from that saved network. Rows that the output file already contains are not measured again.
"""

import argparse
import itertools
from pathlib import Path
from typing import Any

import torch

from benchmarks.resumed_table import measure_rows
from benchmarks.small_sets import SETS
from tigranet.data import LabelledImages
from tigranet.evaluation import accuracy
from tigranet.workflows.train import train

KEYS = ("data", "images", "start", "steps", "seed")
IMAGES = (50, 100, 200, 500, 1000)
STARTS = ("none", "oriented-eth80", "oriented-mnist-rot")
STEPS = (100, 400)
BATCH_SIZE = 50


def main() -> None:
    """Measure all trainings that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--data", nargs="+", choices=SETS, default=["steel", "plankton"])
    parser.add_argument("--images", type=int, nargs="+", default=IMAGES)
    parser.add_argument("--starts", nargs="+", default=STARTS)
    parser.add_argument("--steps", type=int, nargs="+", default=STEPS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--architecture", help="Network of the trainings from random weights.")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    def run(name: str, images: int, start: str, steps: int, seed: int) -> dict[str, Any]:
        data = SETS[name](images, seed, arguments.data_dir)
        epochs = max(1, round(steps * BATCH_SIZE / len(data.train.labels)))
        init = None if start == "none" else start
        architecture = arguments.architecture if init is None else None
        trained = train(data, architecture=architecture, init=init, seed=seed, recipe={"epochs": epochs})
        generator = torch.Generator().manual_seed(seed)
        rotated = LabelledImages(data.test_motion(data.test.images, generator), data.test.labels)
        return {
            "architecture": str(trained.network.architecture),
            "as they are": round(accuracy(trained.network, data.test), 1),
            "rotated": round(accuracy(trained.network, rotated), 1),
            "seconds": round(trained.result.seconds, 1),
        }

    jobs = itertools.product(
        arguments.data, arguments.images, arguments.starts, arguments.steps, range(arguments.seeds)
    )
    measure_rows(arguments.output, KEYS, jobs, run)


if __name__ == "__main__":
    main()
