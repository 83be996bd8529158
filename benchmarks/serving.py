"""Throughput, latency and memory of 'tigranet serve' on the loopback address, with a bounded number of clients.

    python -m benchmarks.serving --requests 100000 --output results/serving.json

Each client keeps one connection open and sends one image after the other. The memory of the server is read before the
first request and after every tenth of the requests, so that growth would be seen.
"""

import argparse
import http.client
import io
import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
from PIL import Image

from tigranet.evaluation.provenance import machine

NUM_IMAGES = 64
"""Number of different images."""


def image_files(side: int) -> list[bytes]:
    """Return the contents of small PNG files of random pixels."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(NUM_IMAGES):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (side, side), dtype=np.uint8)).save(file, "PNG")
        files.append(file.getvalue())
    return files


@contextmanager
def running_server(model: str, *options: str) -> Iterator[tuple[int, int]]:
    """Run a server and yield its port and its process. Its log is discarded."""
    command = [sys.executable, "-c", "from tigranet.cli import main; main()", "serve", model, "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
        while json.loads(process.stdout.readline())["event"] != "ready":
            pass
        threading.Thread(target=lambda: [None for _ in process.stdout or ()], daemon=True).start()
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(60)


def memory_mib(process: int) -> float:
    """Return the resident memory of a process in MiB, or NaN where /proc does not exist."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), float("nan"))


def connect(port: int) -> http.client.HTTPConnection:
    """Connect to the server, which may need another moment after it says that it is ready."""
    for _ in range(100):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
            return connection
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise ConnectionRefusedError(f"no server on port {port}")


def load(port: int, process: int, files: list[bytes], num_requests: int, num_clients: int) -> dict[str, object]:
    """Send requests from several threads, and return the measurements."""
    seconds = np.full(num_requests, np.nan)
    statuses: dict[int, int] = {}
    memory = [memory_mib(process)]
    lock, numbers = threading.Lock(), count()

    def client() -> None:
        connection = connect(port)
        while (number := next(numbers)) < num_requests:
            start = time.perf_counter()
            connection.request("POST", "/predict", files[number % len(files)])
            response = connection.getresponse()
            response.read()
            seconds[number] = time.perf_counter() - start
            with lock:
                statuses[response.status] = statuses.get(response.status, 0) + 1
            if (number + 1) % max(1, num_requests // 10) == 0:
                memory.append(memory_mib(process))
                print(f"{number + 1:,} requests, {memory[-1]:.0f} MiB", file=sys.stderr)
            if response.will_close:  # a refused request
                connection.close()
                connection = connect(port)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(num_clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = time.perf_counter() - start
    p50, p99 = np.nanquantile(seconds, [0.5, 0.99]) * 1000
    return {
        "requests": num_requests,
        "clients": num_clients,
        "statuses": {str(status): number for status, number in sorted(statuses.items())},
        "requests per second": round(num_requests / total, 1),
        "p50, ms": round(float(p50), 2),
        "p99, ms": round(float(p99), 2),
        "memory, MiB": [round(value) for value in memory],
    }


def main() -> None:
    """Run the benchmark and print or save its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="oriented-mnist-012")
    parser.add_argument("--side", type=int, default=28, help="side length of the images in pixels")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    files = image_files(arguments.side)
    with running_server(arguments.model, "--workers", str(arguments.workers)) as (port, process):
        runs = [load(port, process, files, arguments.requests, clients) for clients in arguments.clients]
    results = {
        "command": shlex.join(["python", "-m", "benchmarks.serving", *sys.argv[1:]]),
        "model": arguments.model,
        "side": arguments.side,
        "workers": arguments.workers,
        "runs": runs,
        "machine": machine(),
    }
    print(json.dumps(results, indent=2))
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
