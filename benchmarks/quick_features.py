"""Compare networks as sources of invariant features for logistic regression, without training them on the data.

    python -m benchmarks.quick_features --data-dir data/ --output results/quick-features.csv

Each row has the cross-validated accuracy on the training images, the accuracy on test images as they are and rotated at
random, and the seconds of the whole computation. Rows that the output file already contains are not measured again.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.resumed_table import measure_rows
from benchmarks.small_sets import SETS
from tigranet import TIGraNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation import accuracy
from tigranet.feature_network import FEATURE_ARCHITECTURE, is_saved_network
from tigranet.workflows.first_answer import first_answer

KEYS = ("data", "images", "network", "seed")
IMAGES = 320
NETWORKS = (
    "paper-small",
    "paper",
    "oriented-small",
    "LC[4,5]-D-GB[3]-D-GC[8,3]-GB[5]-D-GC[16,3]-GB[5]-MO[64]-S[0]",
    "paper-eth80",
    "oriented-eth80",
    "oriented-mnist-rot",
    "MC[16,5]-OP[16]-MC[64,5]-S[4]",
    "LC[8,5]-D-GC[16,5]-D-MO[128]-S[0]",
    "LC[8,5]-D-GC[16,5]-D-MO[128]-S[2]",
    "LC[8,5]-MO[32]-D-LC[16,5]-MO[64]-S[4]",
    FEATURE_ARCHITECTURE,
    "pyramid-small-cifar10",
    "pyramid-cifar10",
)


def in_channels_of(network: str, data: DataSet) -> DataSet:
    """Return grey images as colour images if a saved network reads those, as ``tigranet train --init`` does."""
    if not is_saved_network(network) or TIGraNet.from_pretrained(network).in_maps == data.train.images.shape[1]:
        return data
    parts = {name: getattr(data, name) for name in ("train", "validation", "test")}
    return replace(data, **{name: part._replace(images=part.images.repeat(1, 3, 1, 1)) for name, part in parts.items()})


def main() -> None:
    """Measure all networks that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--data", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    def run(name: str, images: int, network: str, seed: int) -> dict[str, Any]:
        data = in_channels_of(network, SETS[name](images, seed, arguments.data_dir))
        answer = first_answer(data, network=network, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        rotated = LabelledImages(data.test_motion(data.test.images, generator), data.test.labels)
        assert answer.accuracy is not None
        return {
            "features": answer.network.num_features,
            "cross-validated": round(answer.accuracy, 1),
            "as they are": round(accuracy(answer.network, data.test), 1),
            "rotated": round(accuracy(answer.network, rotated), 1),
            "seconds": round(answer.seconds, 1),
        }

    jobs = itertools.product(arguments.data, [IMAGES], arguments.networks, range(arguments.seeds))
    measure_rows(arguments.output, KEYS, jobs, run)


if __name__ == "__main__":
    main()
