"""Times that can be compared: all candidates in one process, taking turns, medians.

On a GPU every candidate is timed in two ways. ``median_ms`` is one call of ten in a CUDA graph: the work without the
host. ``eager_ms`` is one of several calls in a row as a user makes them, host included. What waits for the host or
allocates by its data cannot be captured and has the second only. On a CPU there is one way, and it is ``median_ms``.
"""

import csv
import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RESULTS = Path(__file__).parent.parent / "results"
IN_A_ROW = 0.02
"""Seconds of eager calls between two looks at the clock, about, and ten calls at most."""


@dataclass(frozen=True)
class Row:
    """One candidate at one piece of work."""

    work: str
    size: int
    candidate: str
    median_ms: float | None
    least_ms: float | None
    times_fused: float | None
    """Its median over the fused one's: how many times faster the fused one is."""
    saved_mb: float | None = None
    """What it keeps for the backward pass."""
    eager_ms: float | None = None
    eager_times_fused: float | None = None

    @classmethod
    def header(cls) -> list[str]:
        return [*(field.name for field in fields(cls)), "device", "torch"]

    def cells(self) -> list[str]:
        shown = [f"{value:.4g}" if isinstance(value, float) else value for value in astuple(self)]
        return ["" if value is None else str(value) for value in shown] + [device_name(), torch.__version__]


def device_name() -> str:
    return torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"{torch.get_num_threads()} CPU threads"


def write(name: str, rows: Iterable[Row], folder: Path = RESULTS) -> list[Row]:
    """Rows into ``<name>-<device>.csv``, each as soon as it is there."""
    found = []
    with (folder / f"{name}-{DEVICE.type}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Row.header())
        for row in rows:
            found.append(row)
            writer.writerow(row.cells())
            file.flush()
    return found


def once(function: Callable[[], object]) -> float:
    """Seconds of one call; on a GPU, of the work it starts, host overhead included."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def repeated(function: Callable[[], object], times: int) -> Callable[[], object]:
    def run() -> None:
        for _ in range(times):
            function()

    return run


def graphed(function: Callable[[], object]) -> Callable[[], object] | None:
    """On a GPU, ten calls as one CUDA graph: the work without the host; None if it cannot be captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    for _ in range(2):  # what is left of earlier work can be in the way of a first capture
        gc.collect()
        graph, random = torch.cuda.CUDAGraph(), torch.cuda.default_generators[torch.cuda.current_device()]
        state = random.clone_state()
        try:
            with torch.cuda.graph(graph):
                for _ in range(10):
                    function()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            torch.cuda.synchronize()
            random.graphsafe_set_state(state)  # the other one still waits for a graph
        else:
            return graph.replay
    print(f"not captured: {reason}")
    return None


def compare(
    work: str,
    size: int,
    candidates: dict[str, Callable[[], object]],
    saved: dict[str, float] | None = None,
    rounds: int = 9,
) -> list[Row]:
    """Time ``candidates``, of which one is called ``fused``, in turns."""
    if DEVICE.type == "cpu":
        found = _in_turns({name: (function, 1) for name, function in candidates.items()}, rounds)
        eager: dict[str, list[float]] = {}
    else:
        calls = {}
        for name, function in candidates.items():
            function()
            calls[name] = function, max(1, min(10, int(IN_A_ROW / once(function))))
        eager = _in_turns(
            {name: (repeated(function, times), times) for name, (function, times) in calls.items()}, rounds
        )
        graphs = {name: (graph, 10) for name, function in candidates.items() if (graph := graphed(function))}
        found = _in_turns(graphs, rounds)
    rows = []
    for name in candidates:
        seconds, host = found.get(name), eager.get(name)
        row = Row(
            work,
            size,
            name,
            1e3 * median(seconds) if seconds else None,
            1e3 * min(seconds) if seconds else None,
            median(seconds) / median(found["fused"]) if seconds and "fused" in found else None,
            (saved or {}).get(name),
            1e3 * median(host) if host else None,
            median(host) / median(eager["fused"]) if host else None,
        )
        rows.append(row)
        print(_described(row), flush=True)
    return rows


def _in_turns(calls: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, list[float]]:
    """Seconds of one call of each, in every round; a function does so many calls at once."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for function, _ in calls.values():
        function()
    for _ in range(rounds):
        for name, (function, times) in calls.items():
            seconds[name].append(once(function) / times)
    return seconds


def _described(row: Row) -> str:
    text = f"{row.work:36} {row.size:4} {row.candidate:26}"
    if row.median_ms is not None:
        text += f" {row.times_fused or 0:8.1f} x fused {row.median_ms:10.4f} ms"
    if row.eager_ms is not None:
        text += f"; eager {row.eager_times_fused or 0:8.1f} x fused {row.eager_ms:10.4f} ms"
    return text + ("" if row.saved_mb is None else f"; keeps {row.saved_mb:.1f} MB")


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
