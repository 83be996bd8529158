"""Comparable times: all candidates run in one process, one after the other in every round, and medians are reported.

On a GPU every candidate is timed in two ways. ``median_ms`` is the time of one call, measured as ten calls in a CUDA
graph: it excludes the host. ``eager_ms`` is the time of one call of several calls in a row, as a user would make them:
it includes the host. Functions that synchronise with the host or allocate depending on their data cannot be captured in
a graph and have ``eager_ms`` only. On a CPU there is only ``median_ms``.
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
EAGER_SECONDS = 0.02
"""Approximate duration of the eager calls that are timed together. There are at most ten of them."""


@dataclass(frozen=True)
class Row:
    """The times of one candidate for one task. The fields are the columns of the CSV file."""

    work: str
    size: int
    candidate: str
    median_ms: float | None
    least_ms: float | None
    times_fused: float | None
    """Median divided by the median of the candidate ``fused``."""
    saved_mb: float | None = None
    """Megabytes saved for the backward pass."""
    eager_ms: float | None = None
    eager_times_fused: float | None = None

    @classmethod
    def header(cls) -> list[str]:
        """Return the column names of the CSV file."""
        return [*(field.name for field in fields(cls)), "device", "torch"]

    def cells(self) -> list[str]:
        """Return the cells of the row in the CSV file."""
        values = [f"{value:.4g}" if isinstance(value, float) else value for value in astuple(self)]
        return ["" if value is None else str(value) for value in values] + [device_name(), torch.__version__]


def device_name() -> str:
    """Return the name of the GPU, or the number of CPU threads."""
    return torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"{torch.get_num_threads()} CPU threads"


def write(name: str, rows: Iterable[Row], folder: Path = RESULTS) -> list[Row]:
    """Write rows to ``<name>-<device>.csv``, each as soon as it is measured, and return them."""
    written = []
    with (folder / f"{name}-{DEVICE.type}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Row.header())
        for row in rows:
            written.append(row)
            writer.writerow(row.cells())
            file.flush()
    return written


def seconds_of_one_call(function: Callable[[], object]) -> float:
    """Return the seconds of one call; on a GPU, until its work is finished, including the overhead of the host."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def repeat(function: Callable[[], object], times: int) -> Callable[[], object]:
    """Return a function that makes several calls."""

    def run() -> None:
        for _ in range(times):
            function()

    return run


def capture_ten_calls(function: Callable[[], object]) -> Callable[[], object] | None:
    """Return the replay of a CUDA graph of ten calls, or None if the function cannot be captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    for _ in range(2):  # unfinished earlier work can make the first capture fail
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
            random.graphsafe_set_state(state)  # the failed capture left the generator in graph mode
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
    """Time candidates in alternation and return one row per candidate.

    Args:
        work: Name of the task.
        size: Side length of the images.
        candidates: Functions to call, by name. One of them is called ``fused``.
        saved: Megabytes saved for the backward pass, by name.
        rounds: Number of rounds.
    """
    if DEVICE.type == "cpu":
        times = _alternate({name: (function, 1) for name, function in candidates.items()}, rounds)
        eager: dict[str, list[float]] = {}
    else:
        calls = {}
        for name, function in candidates.items():
            function()
            calls[name] = function, max(1, min(10, int(EAGER_SECONDS / seconds_of_one_call(function))))
        eager = _alternate(
            {name: (repeat(function, count), count) for name, (function, count) in calls.items()}, rounds
        )
        graphs = {name: (graph, 10) for name, function in candidates.items() if (graph := capture_ten_calls(function))}
        times = _alternate(graphs, rounds)
    rows = []
    for name in candidates:
        seconds, eager_seconds = times.get(name), eager.get(name)
        row = Row(
            work,
            size,
            name,
            1e3 * median(seconds) if seconds else None,
            1e3 * min(seconds) if seconds else None,
            median(seconds) / median(times["fused"]) if seconds and "fused" in times else None,
            (saved or {}).get(name),
            1e3 * median(eager_seconds) if eager_seconds else None,
            median(eager_seconds) / median(eager["fused"]) if eager_seconds else None,
        )
        rows.append(row)
        print(_summary(row), flush=True)
    return rows


def _alternate(calls: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds per call in every round. ``calls`` has functions and the number of calls that each makes."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for function, _ in calls.values():
        function()
    for _ in range(rounds):
        for name, (function, count) in calls.items():
            seconds[name].append(seconds_of_one_call(function) / count)
    return seconds


def _summary(row: Row) -> str:
    text = f"{row.work:36} {row.size:4} {row.candidate:26}"
    if row.median_ms is not None:
        text += f" {row.times_fused or 0:8.1f} x fused {row.median_ms:10.4f} ms"
    if row.eager_ms is not None:
        text += f"; eager {row.eager_times_fused or 0:8.1f} x fused {row.eager_ms:10.4f} ms"
    return text + ("" if row.saved_mb is None else f"; saves {row.saved_mb:.1f} MB")


def without_gradients(function: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Return a function that calls ``function`` without recording gradients."""

    def run() -> Tensor:
        with torch.no_grad():
            return function()

    return run


def with_gradients(function: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    """Return a function that calls ``function`` and computes the gradients of ``inputs``."""

    def run() -> object:
        output = function()
        return torch.autograd.grad(output, inputs, torch.ones_like(output))

    return run


def saved_megabytes(function: Callable[[], Tensor]) -> float:
    """Return the megabytes that a forward pass saves for the backward pass. Every storage is counted once."""
    storages: dict[int, int] = {}

    def record(tensor: Tensor) -> Tensor:
        parts = [tensor]
        if tensor.layout == torch.sparse_csr:
            parts = [tensor.values(), tensor.col_indices(), tensor.crow_indices()]
        storages.update({part.untyped_storage().data_ptr(): part.untyped_storage().nbytes() for part in parts})
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        function()
    return sum(storages.values()) / 1e6
