"""What kills of processes cost: a bulk prediction through Ray, in which workers and once the driver are killed.

    .venv-engines/bin/python -m benchmarks.engine_kills --images 1000000 --output results/engine-kills.json

It predicts images through Ray with 2 workers, sends SIGKILL to a worker when a fifth of the parts is finished and to
the driver in the middle, runs the same command again, and sends SIGKILL to another worker. Then it checks that each
image has one row and that no part was written twice. The memory of all processes is recorded on the way, in a CSV file
beside the output.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bulk_images import create_images
from benchmarks.process_memory import descendants, resident_mib
from tigranet.evaluation.provenance import machine, versions
from tigranet.workflows.bulk_prediction.source import find_parts

MODEL = "paper-mnist-012"
PART_SIZE = 1000
KILLS = ({0.2: "worker", 0.5: "driver"}, {0.75: "worker"})
"""For each run, what is killed when a share of the parts is finished."""
SAMPLE_SECONDS = 5.0
"""Seconds between two measurements of the memory."""
WORKER = "ray::_predict"
"""Begin of the command of a process of Ray while it predicts a part."""
SETTLED_SHARE = 0.25
"""The first share of the samples of a process, in which it loads modules and the network, is left out."""


def finished_share(answers: Path, parts: int) -> float:
    """Return the share of parts that have a file."""
    return len(list(answers.glob("part-*.parquet"))) / parts


def run_with_kills(
    command: list[str], answers: Path, parts: int, kills: dict[float, str], sample_seconds: float = SAMPLE_SECONDS
) -> dict[str, Any]:
    """Run a command, kill processes when shares of the parts are finished, and record the memory over time.

    Args:
        command: The command.
        answers: Folder in which it writes parts.
        parts: Number of parts.
        kills: ``worker`` or ``driver`` by the share of finished parts.
        sample_seconds: Seconds between two measurements.

    Returns:
        The exit code, the kills, and samples: seconds, share of finished parts, MiB of the driver, MiB of each worker
        by its process number, and MiB of all other processes of Ray together.
    """
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    start, samples, killed, remaining = perf_counter(), [], [], dict(kills)
    workers: set[int] = set()
    while driver.poll() is None:
        time.sleep(sample_seconds)
        share, processes = finished_share(answers, parts), descendants(driver.pid)
        busy = [process for process, text in processes.items() if text.startswith(WORKER)]
        workers = (workers | set(busy)) & processes.keys()
        memory = {process: round(resident_mib(process), 1) for process in processes}
        samples.append(
            {
                "seconds": round(perf_counter() - start, 1),
                "finished": round(share, 4),
                "driver_mib": memory.pop(driver.pid, 0.0),
                "worker_mib": " ".join(f"{process}:{memory.pop(process)}" for process in sorted(workers)),
                "ray_mib": round(sum(memory.values()), 1),
            }
        )
        for at in [at for at in remaining if share >= at]:
            target = driver.pid if remaining[at] == "driver" else next(iter(busy), None)
            if target is not None:
                os.kill(target, signal.SIGKILL)
                killed.append({"process": remaining.pop(at), "finished": round(share, 4)})
                print(f"killed a {killed[-1]['process']} with {share:.0%} finished", flush=True)
    return {
        "exit_code": driver.returncode,
        "seconds": round(perf_counter() - start, 1),
        "killed": killed,
        "samples": samples,
    }


def memory_growth(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Compare the memory of each process at the begin and at the end of its life, after it has loaded everything.

    Args:
        run: What :func:`run_with_kills` returns.

    Returns:
        For the driver, each worker and the rest of Ray: the mean MiB of the first and of the last third of its samples,
        without the very first ones, and the maximum.
    """
    series: dict[str, list[float]] = {}
    for sample in run["samples"]:
        values = {"driver": sample["driver_mib"], "rest of Ray": sample["ray_mib"]}
        workers = (text.split(":") for text in sample["worker_mib"].split())
        values |= {f"worker {process}": float(mib) for process, mib in workers}
        for name, mib in values.items():
            if mib:
                series.setdefault(name, []).append(mib)
    growth = {}
    for name, points in series.items():
        settled = points[int(SETTLED_SHARE * len(points)) :]
        third = max(1, len(settled) // 3)
        growth[name] = {
            "first_mib": round(mean(settled[:third]), 1),
            "last_mib": round(mean(settled[-third:]), 1),
            "max_mib": max(points),
            "samples": len(points),
        }
    return growth


def check_answers(answers: Path, images: int) -> dict[str, int]:
    """Count the images that have no row or several, and the rows that the manifest lists."""
    names = np.sort(pq.read_table(answers, columns=["path"])["path"].to_numpy())
    different = len(np.unique(names))
    manifest = json.loads((answers / "_manifest.json").read_text())
    return {
        "rows": len(names),
        "lost": images - different,
        "twice": len(names) - different,
        "manifest_images": manifest["images"],
    }


def measure(images: int, part_size: int, model: str, sample_seconds: float) -> dict[str, Any]:
    """Predict images through Ray with 2 workers, kill processes, continue, and check the answers."""
    with tempfile.TemporaryDirectory() as name:
        source, answers = create_images(Path(name) / "images", images, rows_per_group=500), Path(name) / "answers"
        parts = sum(1 for _ in find_parts([str(source)], part_size))
        command = [sys.executable, "-m", "tigranet", "predict", model, str(source), "-o", str(answers)]
        command += ["--engine", "ray", "--workers", "2", "--part-size", str(part_size), "--unknown", "off"]
        runs, written = [], {}
        repeated = 0
        for kills in KILLS:
            runs.append(run_with_kills(command, answers, parts, kills, sample_seconds))
            after = {path.name: path.stat().st_mtime_ns for path in answers.glob("part-*.parquet")}
            repeated += sum(after[file] != changed for file, changed in written.items())
            runs[-1]["parts"] = len(after) - len(written)
            runs[-1]["memory"] = memory_growth(runs[-1])
            written = after
        return {**check_answers(answers, images), "parts": parts, "parts_written_again": repeated, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--part-size", type=int, default=PART_SIZE)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--sample-seconds", type=float, default=SAMPLE_SECONDS)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    measured = measure(arguments.images, arguments.part_size, arguments.model, arguments.sample_seconds)
    settings = {name: value for name, value in vars(arguments).items() if name != "output"}
    record = {"machine": machine(), "versions": versions(), "arguments": settings, **measured}
    samples = [{"run": number, **row} for number, run in enumerate(measured["runs"], 1) for row in run.pop("samples")]
    print(json.dumps(record, indent=1))
    if arguments.output:
        arguments.output.write_text(json.dumps(record, indent=1) + "\n")
        with arguments.output.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, samples[0])
            writer.writeheader()
            writer.writerows(samples)


if __name__ == "__main__":
    main()
