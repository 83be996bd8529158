"""Time and memory per image of a training step or of inference, and the limits of the machine."""

import ctypes
import gc
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.cost_networks import CLASSES, ONE_IMAGE, TRAINING, CostCandidate
from tigranet.freed_memory import keep_freed_memory
from tigranet.matrix_precision import matrix_precision
from tigranet.ops import using

FLOP_SIZE = 64
"""Side length of the image for which operations are counted. Larger images need more in proportion to their pixels."""
MAX_BATCH = 1024
"""Largest number of images per step."""
MIB = 2**20
Step = Callable[[], object]


class Cost(NamedTuple):
    """What one image costs."""

    batch: int
    """Number of images per step."""
    ms: float
    """Milliseconds per image."""
    processor_ms: float | None
    """Milliseconds of all CPU threads per image, where the CPU computes."""
    mib: float | None
    """Memory that the step needs beside weights, optimiser and images, in MiB per image."""
    gflop: float
    """Operations in matrix products and convolutions, in 1e9 per image."""
    timing: str
    """``graph`` for the replay of a CUDA graph, as in a training by ``fit``, else ``eager``."""


def measure_cost(
    candidate: CostCandidate,
    size: int,
    work: str,
    precision: str,
    device: torch.device,
    pixels: int,
    seconds: float,
    max_bytes: float | None = None,
) -> Cost:
    """Measure what one image costs.

    Args:
        candidate: The network.
        size: Side length of the images.
        work: One of :data:`~benchmarks.cost_networks.WORKS`.
        precision: ``float32``, ``tf32`` or ``bf16``.
        device: Where to compute.
        pixels: Number of pixels of a batch, reduced where a step would take longer than ``seconds``.
        seconds: Approximate upper limit of the time of a step, and of all timed steps.
        max_bytes: Upper limit of the memory of a step, for the number of images; None for no limit.

    Returns:
        The cost.
    """
    gflop = count_gflop(candidate, size, work == TRAINING, device)
    net = candidate.build(size).to(device).train(work == TRAINING)
    with matrix_precision(tf32=precision == "tf32"):
        step = _step(net, torch.rand(1, 1, size, size, device=device), work, precision)
        _time(step, 1, device)  # compiles
        memory, step_seconds, batch = _peak_bytes(step, device), _time(step, 1, device), 1
        if work != ONE_IMAGE:
            limits = [candidate.batch_share * pixels / size**2, MAX_BATCH]
            if device.type == "cpu":  # one image does not fill a GPU
                limits.append(seconds / 3 / step_seconds)
            if max_bytes and memory:
                limits.append(max_bytes / memory)
            batch = max(1, int(min(limits)))
        if batch > 1:
            step = _step(net, torch.rand(batch, 1, size, size, device=device), work, precision)
            _time(step, 1, device)
            memory = _peak_bytes(step, device)
        timing, calls = "eager", _calls(_time(step, 1, device), seconds)
        if device.type == "cuda" and candidate.capturable and (replay := _captured(step)) is not None:
            timing, step = "graph", replay
            calls = _calls(_time(step, 1, device), seconds)
        with keep_freed_memory(device.type == "cpu"):
            _time(step, 1, device)
            start = time.process_time()
            timings = [_time(step, calls, device) for _ in range(3)]
            processor_seconds = (time.process_time() - start) / 3
    return Cost(
        batch,
        1e3 * min(timings) / batch,
        1e3 * processor_seconds / calls / batch if device.type == "cpu" else None,
        None if memory is None else memory / batch / MIB,
        gflop,
        timing,
    )


def _step(net: nn.Module, images: torch.Tensor, work: str, precision: str) -> Step:
    """Return a training step, or the inference of the images. Autocast computes in bf16, as in a training."""

    def logits() -> torch.Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=precision == "bf16"):
            return net(images)

    if work != TRAINING:

        def infer() -> None:
            with torch.inference_mode():
                logits()

        return infer
    labels = torch.arange(len(images), device=images.device) % CLASSES
    optimizer = torch.optim.Adam(net.parameters(), fused=True, capturable=images.is_cuda)

    def train() -> None:
        optimizer.zero_grad()
        F.cross_entropy(logits().float(), labels).backward()
        optimizer.step()

    return train


def _calls(call_seconds: float, seconds: float) -> int:
    """Return how many calls to time together, so that three times as many take at most ``seconds``."""
    return max(1, min(20, int(seconds / 3 / call_seconds)))


def _time(step: Step, calls: int, device: torch.device) -> float:
    """Return the seconds of one of several calls, until their work is finished."""
    _finish(device)
    start = time.perf_counter()
    for _ in range(calls):
        step()
    _finish(device)
    return (time.perf_counter() - start) / calls


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _captured(step: Step) -> Step | None:
    """Return the replay of a CUDA graph of one step, or None if the step cannot be recorded."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph, random = torch.cuda.CUDAGraph(), torch.cuda.default_generators[torch.cuda.current_device()]
    state = random.clone_state()
    try:
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        print(f"not captured: {str(error).splitlines()[0]}")
        torch.cuda.synchronize()
        random.graphsafe_set_state(state)  # the failed capture left the generator in graph mode
        return None
    return graph.replay


def _peak_bytes(step: Step, device: torch.device) -> int | None:
    """Return the memory that a step needs beyond what is allocated before it, or None if the system does not say."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    try:
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))  # gives back what earlier steps have freed
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again at the present size
        before = _status_bytes("VmRSS")
        step()
        return max(0, _status_bytes("VmHWM") - before)
    except (OSError, AttributeError):  # not Linux with glibc
        return None


def _status_bytes(field: str) -> int:
    """Return a size of this process from Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def count_gflop(candidate: CostCandidate, size: int, training: bool, device: torch.device) -> float:
    """Count the operations in matrix products and convolutions for one image, in 1e9.

    The plain PyTorch version is counted, on an image of at most :data:`FLOP_SIZE` pixels on each side. A network that
    is not made of PyTorch's operations has none.
    """
    side = min(size, FLOP_SIZE)
    return _flop_of_one_image(candidate, side, training, device) * (size / side) ** 2 / 1e9


@cache
def _flop_of_one_image(candidate: CostCandidate, side: int, training: bool, device: torch.device) -> int:
    net, image = candidate.build(side).to(device).train(training), torch.rand(1, 1, side, side, device=device)
    with using("plain"), FlopCounterMode(display=False) as counter, torch.set_grad_enabled(training):
        output = net(image)
        if training:
            output.sum().backward()
    return counter.get_total_flops()


def machine_limits(device: torch.device, precisions: tuple[str, ...]) -> dict[str, float]:
    """Measure the bandwidth of a copy that is larger than the caches, and the peak of one large matrix product.

    Args:
        device: The device.
        precisions: The precisions of the product.

    Returns:
        ``copy, GB/s`` (bytes read plus bytes written) and ``matrix product in <precision>, GFLOP/s``.
    """
    on_gpu = device.type == "cuda"
    source = torch.rand(2**28 if on_gpu else 2**25, device=device)
    target, side = torch.empty_like(source), 8192 if on_gpu else 2048
    limits = {"copy, GB/s": 2 * source.nbytes / _least(lambda: target.copy_(source), device) / 1e9}
    factor: Any = torch.rand(side, side, device=device)
    for precision in precisions:
        with matrix_precision(tf32=precision == "tf32"):
            operand = factor.bfloat16() if precision == "bf16" else factor
            seconds = _least(lambda operand=operand: operand @ operand, device)
        limits[f"matrix product in {precision}, GFLOP/s"] = 2 * side**3 / seconds / 1e9
    return limits


def _least(step: Step, device: torch.device) -> float:
    return min(_time(step, 1, device) for _ in range(10))
