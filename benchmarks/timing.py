"""Times that can be compared: all candidates in one process, taking turns, medians."""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from statistics import median

import torch
from torch import Tensor

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class Row:
    """One candidate at one piece of work."""

    work: str
    size: int
    candidate: str
    median_ms: float
    least_ms: float
    times_fused: float
    """Its median over the fused one's: how many times faster the fused one is."""
    saved_mb: float | None = None
    """What it keeps for the backward pass."""

    @classmethod
    def header(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def once(function: Callable[[], object]) -> float:
    """Seconds of one call; on a GPU, of the work it starts, host overhead included."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def graphed(function: Callable[[], object]) -> tuple[Callable[[], object], int]:
    """On a GPU, ten calls as one CUDA graph: the work without the host; one call if it cannot be captured."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(10):
                function()
    except RuntimeError as error:
        print(f"not captured: {str(error).splitlines()[0]}")
        torch.cuda.synchronize()
        return function, 1
    return graph.replay, 10


def compare(
    work: str,
    size: int,
    candidates: dict[str, Callable[[], object]],
    saved: dict[str, float] | None = None,
    rounds: int = 9,
) -> list[Row]:
    """Time ``candidates``, of which one is called ``fused``, in turns."""
    calls = {
        name: graphed(function) if DEVICE.type == "cuda" else (function, 1) for name, function in candidates.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for function, _ in calls.values():
        function()
    for _ in range(rounds):
        for name, (function, times) in calls.items():
            seconds[name].append(once(function) / times)
    fused = median(seconds["fused"])
    rows = [
        Row(work, size, name, 1e3 * median(s), 1e3 * min(s), median(s) / fused, (saved or {}).get(name))
        for name, s in seconds.items()
    ]
    for row in rows:
        memory = "" if row.saved_mb is None else f", keeps {row.saved_mb:.1f} MB"
        print(
            f"{work:28} {size:4} {row.candidate:22} {row.times_fused:8.1f} x fused {row.median_ms:10.3f} ms{memory}",
            flush=True,
        )
    return rows


def without_gradients(function: Callable[[], Tensor]) -> Callable[[], Tensor]:
    def run() -> Tensor:
        with torch.no_grad():
            return function()

    return run


def with_gradients(function: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    def run() -> object:
        answer = function()
        return torch.autograd.grad(answer, inputs, torch.ones_like(answer))

    return run


def kept_for_backward(function: Callable[[], Tensor]) -> float:
    """Megabytes that a forward pass keeps, each storage once."""
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        parts = [tensor]
        if tensor.layout == torch.sparse_csr:
            parts = [tensor.values(), tensor.col_indices(), tensor.crow_indices()]
        storages.update({part.untyped_storage().data_ptr(): part.untyped_storage().nbytes() for part in parts})
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        function()
    return sum(storages.values()) / 1e6
