"""Measure the time of one training image on one thread, for all presets or for given networks.

    python -m benchmarks.training_cost --size 64 --output results/training-cost.csv

The time is that of the processor, not of the clock, so that other programs disturb it little. It is the least of
several steps of forward pass, backward pass and optimiser, divided by the number of images.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.resumed_table import measure_rows
from tigranet import TIGraNet
from tigranet.architecture import PRESETS
from tigranet.workflows.measured_training import count_parameters

KEYS = ("network", "size", "batch")
CLASSES = 10
REPEATS = 4


def run(network: str, size: int, batch: int) -> dict[str, Any]:
    """Return the milliseconds per image of a training step and of inference."""
    torch.set_num_threads(1)
    images, labels = torch.rand(batch, 1, size, size), torch.arange(batch) % CLASSES
    net = TIGraNet(network, CLASSES)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimiser.step()

    training = _least_time(step)
    net.eval()
    with torch.inference_mode():
        inference = _least_time(lambda: net(images))
    return {
        "training, ms": round(1000 * training / batch, 2),
        "inference, ms": round(1000 * inference / batch, 2),
        "parameters": count_parameters(net),
    }


def _least_time(function: Any) -> float:
    """Return the least processor time of several calls in seconds, after one call that may compile kernels."""
    function()
    times = []
    for _ in range(REPEATS):
        start = process_time()
        function()
        times.append(process_time() - start)
    return min(times)


def main() -> None:
    """Measure all networks that the output file does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=list(PRESETS))
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    jobs = [(network, arguments.size, arguments.batch) for network in arguments.networks]
    measure_rows(arguments.output, KEYS, jobs, run)


if __name__ == "__main__":
    main()
