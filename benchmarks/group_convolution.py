"""Group convolutions on a CPU: our kernels by frequencies, and PyTorch's convolution with all rotated filters.

    python -m benchmarks.group_convolution --output results/group-convolution.csv

Each case is a layer of a preset with 50 images. Both are computed in turns, in float32, forward and backward, and
PyTorch's convolution also in bfloat16 where the CPU computes with it. A table (.md) is written beside the CSV file. To
see what a processor without AVX-512 would gain, take its instructions away:

    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx,+avx2,+fma,+sse4.2,+bmi,+bmi2,+popcnt,+f16c,+movbe,+lzcnt \
        ONEDNN_MAX_CPU_ISA=AVX2 python -m benchmarks.group_convolution --float32-only \
        --output results/group-convolution-avx2.csv
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.resumed_table import provenance
from tigranet.half_precision import computes_with
from tigranet.layers import GroupConv
from tigranet.ops import group_convolution
from tigranet.ops.orientation_frequencies import ORIENTATIONS

IMAGES, ROUNDS = 50, 7


class Case(NamedTuple):
    """A group convolution of a preset."""

    network: str
    side: int
    """Height and width of the maps in pixels."""
    in_features: int
    out_features: int
    size: int
    """Side length of the filters."""


CASES = (
    Case("pyramid-medium, 64 pixels", 64, 8, 8, 3),
    Case("pyramid-medium, 64 pixels", 32, 8, 16, 3),
    Case("pyramid-medium, 64 pixels", 32, 16, 16, 3),
    Case("pyramid-medium, 64 pixels", 16, 32, 32, 3),
    Case("pyramid-medium, 64 pixels", 16, 32, 128, 1),
    Case("pyramid, 64 pixels", 32, 16, 16, 5),
    Case("pyramid, 64 pixels", 16, 32, 32, 5),
    Case("pyramid-large, 32 pixels", 32, 12, 12, 5),
    Case("pyramid-large, 32 pixels", 16, 24, 24, 5),
    Case("pyramid-large, 32 pixels", 8, 48, 48, 5),
    Case("pyramid-224, 224 pixels", 112, 8, 8, 5),
)


def convolutions(case: Case, float32_only: bool) -> dict[str, tuple[Callable[[], Tensor], Callable[[Tensor], object]]]:
    """Return the forward and the backward pass of each way to compute a layer, by name."""
    conv, side = GroupConv(ORIENTATIONS * case.in_features, case.out_features, ORIENTATIONS, case.size), case.side
    padded = side + case.size - 1
    x = torch.randn(IMAGES, conv.in_maps, padded, padded).contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    filters = conv.filters().detach().contiguous(memory_format=torch.channels_last).requires_grad_()

    def frequencies() -> Tensor:
        return group_convolution(x, conv.weight, conv.basis)

    def dense() -> Tensor:
        return F.conv2d(x, filters)

    def dense_in_half_precision() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.conv2d(x, filters)

    result = {
        "by frequencies": (frequencies, lambda z: torch.autograd.grad(z, (x, conv.weight), torch.ones_like(z))),
        "dense": (dense, lambda z: torch.autograd.grad(z, (x, filters), torch.ones_like(z))),
    }
    if not float32_only and computes_with(torch.device("cpu"), torch.bfloat16):
        half = dense_in_half_precision, result["dense"][1]
        result["dense, bf16"] = half
    return result


def measure(case: Case, float32_only: bool) -> dict[str, dict[str, float]]:
    """Return milliseconds per image, the shortest of several rounds, by name and pass."""
    ways = convolutions(case, float32_only)
    times: dict[str, dict[str, float]] = {
        name: {"forward": float("inf"), "backward": float("inf"), "inference": float("inf")} for name in ways
    }
    for _ in range(ROUNDS + 1):  # the first round compiles
        for name, (forward, backward) in ways.items():
            with torch.no_grad():
                start = time.perf_counter()
                forward()
                inference = time.perf_counter() - start
            start = time.perf_counter()
            z = forward()
            between = time.perf_counter()
            backward(z)
            end = time.perf_counter()
            for kind, seconds in (("inference", inference), ("forward", between - start), ("backward", end - between)):
                times[name][kind] = min(times[name][kind], 1e3 * seconds / IMAGES)
    return times


def write_table(path: Path) -> None:
    """Write the rows of a CSV file as a table beside it."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    names = list(dict.fromkeys(row["way"] for row in rows))
    lines = [
        f"# Group convolutions: {rows[0]['threads']} threads of {rows[0]['cpu']}, PyTorch {rows[0]['torch']}",
        "",
        f"`python -m benchmarks.group_convolution --output results/{path.name}`. Milliseconds per image, forward / "
        "backward, and times as fast as PyTorch's convolution in float32.",
        "",
        f"| layer of | features | filters | maps | {' | '.join(names)} |",
        "| --- | --- | --- | --- |" + " ---: |" * len(names),
    ]
    for case in dict.fromkeys(tuple(row[name] for name in Case._fields) for row in rows):
        by_name = {row["way"]: row for row in rows if tuple(row[name] for name in Case._fields) == case}
        network, side, in_features, out_features, size = case
        dense = [float(by_name["dense"][kind]) for kind in ("forward", "backward")]
        cells = []
        for name in names:
            own = [float(by_name[name][kind]) for kind in ("forward", "backward")]
            factors = " / ".join(f"{a / b:.1f}" for a, b in zip(dense, own, strict=True))
            cells.append(f"{own[0]:.3f} / {own[1]:.3f} ms" + ("" if name == "dense" else f"; {factors} times"))
        line = (network, f"{in_features} to {out_features}", f"{size}x{size}", f"{side}x{side}", *cells)
        lines.append(f"| {' | '.join(line)} |")
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="The CSV file, which is written anew.")
    parser.add_argument("--float32-only", action="store_true", help="Without bfloat16.")
    arguments = parser.parse_args()
    output = arguments.output
    with output.open("w", newline="") as file:
        kinds = ("inference", "forward", "backward")
        table = csv.DictWriter(file, [*Case._fields, "way", *kinds, *provenance()], lineterminator="\n")
        table.writeheader()
        for case in CASES:
            for way, times in measure(case, arguments.float32_only).items():
                numbers = {kind: f"{ms:.4g}" for kind, ms in times.items()}
                table.writerow({**case._asdict(), "way": way, **numbers, **provenance()})
                print(*case, way, *(f"{kind} {ms} ms" for kind, ms in numbers.items()), flush=True)
            file.flush()
    write_table(output)


if __name__ == "__main__":
    main()
