"""Time the operations of the pyramid networks on a GPU, fused and plain: ``python -m benchmarks.pyramid_kernels``.

Each operation is timed with the shapes that it has in a network, in bfloat16 (as under autocast) and in float32. Calls
are replayed from a CUDA graph between two CUDA events, so that the times exclude the host. The bytes per second of the
fused version count what its kernels have to read and write at least.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.timing import DEVICE, capture_ten_calls, device_name
from tigranet import GridLaplacian
from tigranet.ops import coarsen, orientation_norm, orientation_norm_eval, using
from tigranet.ops.grid_spec import GridSpec

ORIENTATIONS, EPS, ROUNDS = 8, 1e-5, 9
NETWORKS = {
    ("pyramid-large", 32, 250): [(12, 32, 2), (24, 16, 2), (48, 8, 2), (128, 8, 0)],
    ("pyramid", 64, 250): [(8, 64, 1), (16, 32, 2), (32, 16, 2), (48, 8, 2), (128, 8, 0)],
    ("pyramid", 224, 32): [(8, 224, 1), (16, 112, 2), (32, 56, 2), (48, 28, 2), (128, 28, 0)],
}
"""Preset, image size and batch size; and the features, the side length and the border of its normalisations."""


class Case(NamedTuple):
    """An operation with its inputs."""

    name: str
    function: Callable[..., Tensor]
    inputs: list[Tensor]
    """Tensors whose gradients are computed."""
    forward_bytes: int
    backward_bytes: int


def cases(features: int, side: int, border: int, batch: int, dtype: torch.dtype) -> Iterator[Case]:
    """Yield the operations on features with orientations."""
    maps, laplacian = ORIENTATIONS * features, GridLaplacian(side, side)
    grid = GridSpec.of(laplacian)
    y = torch.randn(batch, side**2, maps, device=DEVICE).to(dtype).transpose(1, 2)
    scale, bias, mean = (torch.rand(features, device=DEVICE) for _ in range(3))
    variance = 1 + torch.rand(features, device=DEVICE)
    size, padded = y.nbytes, y.nbytes * (side + 2 * border) ** 2 // side**2

    def norm(y: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        return orientation_norm(y, scale, bias, EPS, border, grid)[0]

    def norm_eval(y: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        return orientation_norm_eval(y, mean, variance, scale, bias, EPS, border, grid)

    backward_bytes = 2 * (size + padded) + size
    yield Case("orientation_norm", norm, [y, scale, bias], 2 * size + padded, backward_bytes)
    yield Case("orientation_norm_eval", norm_eval, [y, scale, bias], size + padded, backward_bytes)
    if side % 2 == 0 and border > 0:
        yield Case("coarsen", lambda y: coarsen(y, laplacian), [y], size * 5 // 4, size * 5 // 4)


def measure(case: Case, mode: str) -> tuple[float, float]:
    """Return the milliseconds of the forward pass, and of the forward and backward pass."""
    with using(mode):
        inputs = [x.detach() for x in case.inputs]
        forward = milliseconds(partial(case.function, *inputs))
        leaves = [x.requires_grad_() for x in inputs]
        g = torch.ones_like(case.function(*leaves))
        return forward, milliseconds(lambda: torch.autograd.grad(case.function(*leaves), leaves, g))


def milliseconds(function: Callable[[], object]) -> float:
    """Return the median time of one call, from a CUDA graph of ten calls, or of ten calls where there is none."""
    replay = capture_ten_calls(function) or (lambda: [function() for _ in range(10)])
    times = []
    for _ in range(ROUNDS + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 10)
    return median(times[1:])


def report(case: Case, shape: str) -> str:
    """Time an operation and describe the result in one line."""
    (fused, fused_both), (plain, plain_both) = measure(case, "fused"), measure(case, "plain")
    rates = case.forward_bytes / fused, case.backward_bytes / max(fused_both - fused, 1e-6)
    forward_rate, backward_rate = (rate / 1e9 for rate in rates)  # bytes per millisecond to TB/s
    return (
        f"{case.name:22} {shape:34} forward {fused:8.4f} ms, {plain / fused:5.1f} x, {forward_rate:5.2f} TB/s; "
        f"backward {fused_both - fused:8.4f} ms, {(plain_both - plain) / max(fused_both - fused, 1e-6):5.1f} x, "
        f"{backward_rate:5.2f} TB/s"
    )


def main() -> None:
    """Print one line per operation and shape."""
    if DEVICE.type != "cuda":
        print("skipped: this benchmark needs an NVIDIA GPU")
        return
    print(f"PyTorch {torch.__version__}, {device_name()}; 'x' is the time of plain PyTorch divided by that of fused")
    for (preset, image_size, batch), layers in NETWORKS.items():
        for dtype in (torch.bfloat16, torch.float32):
            print(f"\n{preset} at {image_size} x {image_size}, batch size {batch}, {dtype}")
            for features, side, border in layers:
                for case in cases(features, side, border, batch, dtype):
                    shape = f"{ORIENTATIONS * features} maps of {side} x {side}, border {border}"
                    print(report(case, shape), flush=True)


if __name__ == "__main__":
    main()
