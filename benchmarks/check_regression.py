"""``python -m benchmarks.check_regression``: fail if this version has become slower.

    python -m benchmarks.check_regression --device cpu
    python -m benchmarks.check_regression --device cpu --record

It measures ratios: the time of our fused version divided by that of plain PyTorch or of ResNet-18, in turns, so that
neither the machine's clock nor its load matters much. On a CPU it is the processor time of all threads. A ratio that is
more than 15 % above the recorded one is measured again, and is a loss if it stays there. The exit code is 1 if there is
a loss. ``--record`` writes the measured ratios to ``results/ratios-<device>.json`` instead.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tigranet import GridLaplacian, Statistics, TIGraNet
from tigranet.baselines import ResNet
from tigranet.evaluation.provenance import machine
from tigranet.ops import using

RESULTS = Path(__file__).parent.parent / "results"
MAX_LOSS = 0.15
"""Largest growth of a ratio that is no loss."""
ATTEMPTS = 3
"""How often a ratio is measured before its growth is called a loss."""
CLASSES = 10
Step = Callable[[], object]


class Pair(NamedTuple):
    """Two pieces of work whose times are compared."""

    ours: Step
    reference: Step


def pairs(device: torch.device) -> dict[str, Callable[[], Pair]]:
    """Return what is compared, by name, each as a function that builds it."""
    on_gpu = device.type == "cuda"
    batch, preset = (32, "pyramid") if on_gpu else (4, "pyramid-small")
    return {
        "statistics, 26x26, fused / plain": partial(statistics_pair, 500 if on_gpu else 20, device),
        "oriented-small, 64x64, training, fused / plain": partial(
            plain_pair, "oriented-small", 64, batch, True, device
        ),
        "oriented, 34x34, inference, fused / plain": partial(plain_pair, "oriented", 34, 8 * batch, False, device),
        "pyramid-small, 64x64, training, fused / plain": partial(
            plain_pair, "pyramid-small", 64, 4 * batch, True, device
        ),
        f"{preset}, 224x224, training, / resnet18": partial(resnet_pair, preset, 224, batch, True, device),
        f"{preset}, 224x224, one image, / resnet18": partial(resnet_pair, preset, 224, 1, False, device),
    }


def statistics_pair(batch: int, device: torch.device) -> Pair:
    """Compare the statistics layer, forward and backward, with plain PyTorch."""
    layer, grid = Statistics(12), GridLaplacian(26, 26)
    signals = torch.rand(batch, 20, 26**2, device=device, requires_grad=True)

    def step() -> None:
        layer(signals, grid).sum().backward()

    return Pair(step, in_plain_pytorch(step))


def plain_pair(preset: str, size: int, batch: int, training: bool, device: torch.device) -> Pair:
    """Compare a network with itself in plain PyTorch."""
    step = network_step(TIGraNet(preset, CLASSES).to(device), size, batch, training, device)
    return Pair(step, in_plain_pytorch(step))


def resnet_pair(preset: str, size: int, batch: int, training: bool, device: torch.device) -> Pair:
    """Compare a network with ResNet-18."""
    ours, resnet = TIGraNet(preset, CLASSES), ResNet("resnet18", CLASSES, size)
    return Pair(*(network_step(net.to(device), size, batch, training, device) for net in (ours, resnet)))


def in_plain_pytorch(step: Step) -> Step:
    """Return the same work without fused kernels."""

    def plain() -> None:
        with using("plain"):
            step()

    return plain


def network_step(net: nn.Module, size: int, batch: int, training: bool, device: torch.device) -> Step:
    """Return a forward and backward pass, or inference."""
    images, labels = torch.rand(batch, 1, size, size, device=device), torch.arange(batch, device=device) % CLASSES
    net.train(training)

    def step() -> None:
        with torch.inference_mode(not training):
            logits = net(images)
        if training:
            net.zero_grad()
            F.cross_entropy(logits, labels).backward()

    return step


def measure_ratio(pair: Pair, device: torch.device, rounds: int) -> float:
    """Return the shortest time of our version divided by that of the reference, both timed in turns."""
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    times: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for step, seconds in zip(pair, times, strict=True):
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            start = clock()
            step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds.append(clock() - start)
    ours, reference = (min(seconds[1:]) for seconds in times)  # the first call compiles
    return ours / reference


def check(
    recorded: dict[str, float], built: dict[str, Callable[[], Pair]], device: torch.device, rounds: int
) -> list[str]:
    """Compare the ratios with recorded ones.

    Args:
        recorded: The recorded ratios by name.
        built: What is compared, see :func:`pairs`. Names without a recorded ratio are an error.
        device: Where it is computed.
        rounds: Number of timings.

    Returns:
        One line for each loss.
    """
    losses = []
    for name, build in built.items():
        if name not in recorded:
            losses.append(f"{name}: no recorded ratio, run with --record")
            continue
        pair, limit = build(), recorded[name] * (1 + MAX_LOSS)
        ratio = min_until_below(partial(measure_ratio, pair, device, rounds), limit)
        print(f"{name:50} {ratio:8.4f}, recorded {recorded[name]:8.4f}", flush=True)
        if ratio > limit:
            losses.append(f"{name}: {ratio:.4f} is {100 * (ratio / recorded[name] - 1):.0f} % above {recorded[name]}")
    return losses


def min_until_below(measure: Callable[[], float], limit: float) -> float:
    """Measure up to :data:`ATTEMPTS` times, until a value is not above the limit, and return the least value."""
    least = measure()
    for _ in range(ATTEMPTS - 1):
        if least <= limit:
            break
        least = min(least, measure())
    return least


def main() -> None:
    """Check or record the ratios of a device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15, help="Number of timings.")
    parser.add_argument("--record", action="store_true", help="Write the ratios instead of comparing them.")
    parser.add_argument("--file", type=Path, help="By default results/ratios-<device>.json.")
    options = parser.parse_args()
    device, path = torch.device(options.device), options.file or RESULTS / f"ratios-{options.device}.json"
    built = pairs(device)
    if options.record:
        ratios = {name: round(measure_ratio(build(), device, options.rounds), 4) for name, build in built.items()}
        path.write_text(json.dumps({"machine": machine(), "ratios": ratios}, indent=2) + "\n")
        print(path.read_text())
        return
    if not path.exists():
        sys.exit(f"{path} does not exist: run with --record first")
    recorded = json.loads(path.read_text())
    print(f"{path} was recorded on {describe(recorded['machine'])}")
    note = ""
    if recorded["machine"] != machine():
        note = (
            f"recorded on another machine ({describe(recorded['machine'])}) than this one ({describe(machine())}): "
            "ratios may differ for that reason. To be sure, --record those of the earlier version on this machine"
        )
        print(note)
    if losses := check(recorded["ratios"], built, device, options.rounds):
        sys.exit("\n".join(filter(None, [*losses, note])))


def describe(machine: dict[str, Any]) -> str:
    """Return a machine in words: the GPU, or the number of threads and the name of the CPU."""
    return machine["gpu"] or f"{machine['threads']} threads of {machine['cpu']}"


if __name__ == "__main__":
    main()
