"""Throughput of bulk predictions against workers and batch size, and what kills of processes cost.

    .venv-engines/bin/python -m benchmarks.engines throughput --images 20000 --output results/engines.json
    .venv-engines/bin/python -m benchmarks.engines kills --images 1000000 --output results/engine-kills.json

``throughput`` measures the local engine and Ray beside the limit of the cores, and beside a plain loop over a
DataLoader with ResNet-18 from the same files. The limit is the number of cores divided by the processor time for
reading, decoding and computing an image in one thread; the share of it is that of the steady state, without the start
of the workers. Nothing else should run on the machine. ``kills`` predicts images through Ray with 2 workers, sends
SIGKILL to a worker and once to the driver, runs the same command again, and checks that each image has one row.

Images are PNG files of 28x28 pixels in Parquet files of 20,000, in a temporary folder. Their number is an option.
"""

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tigranet import TIGraNet
from tigranet.baselines.resnet import ResNet
from tigranet.data.letterbox import read_letterboxed
from tigranet.evaluation.batched_inference import inference
from tigranet.evaluation.provenance import machine, versions
from tigranet.workflows.bulk_prediction import predict_source
from tigranet.workflows.bulk_prediction.local_engine import usable_cores
from tigranet.workflows.bulk_prediction.source import find_parts

MODEL = "oriented-mnist-012"
SIDE, DIFFERENT, ROWS_PER_FILE, ROWS_PER_GROUP = 28, 500, 20_000, 500
PART_SIZE = 1000
BATCH_SIZES = (16, 64, 256)
SAMPLE_SECONDS = 2.0
"""Seconds between two measurements of the memory."""


def create_images(folder: Path, count: int) -> Path:
    """Write Parquet files with the content of images, which repeat, and with names, which do not."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    files = []
    for _ in range(DIFFERENT):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)).save(file, "PNG")
        files.append(file.getvalue())
    for start in range(0, count, ROWS_PER_FILE):
        numbers = range(start, min(start + ROWS_PER_FILE, count))
        contents = pa.array([files[number % DIFFERENT] for number in numbers], pa.binary())
        table = pa.table({"image": contents, "path": [f"{number:09d}.png" for number in numbers]})
        pq.write_table(table, folder / f"{start:09d}.parquet", row_group_size=ROWS_PER_GROUP)
    return folder


def core_limit(source: Path, count: int, batch_size: int) -> dict[str, float]:
    """Measure the processor time per image in one thread: reading and decoding, and computing."""
    network = TIGraNet.from_pretrained(MODEL)
    torch.set_num_threads(1)
    items = (image for part in find_parts([str(source)], PART_SIZE) for _, image in part.read())
    start = process_time()
    images = [image for _, image in read_letterboxed(islice(items, count), SIDE, color=False, workers=1)]
    decode = (process_time() - start) / len(images)
    batches = torch.stack(images).split(batch_size)
    with inference(network):
        network(batches[0])  # loads the kernels
        start = process_time()
        for batch in batches:
            network(batch).softmax(1).max(1)
        compute = (process_time() - start) / len(images)
    torch.set_num_threads(usable_cores())
    return {
        "decode_seconds_per_image": decode,
        "compute_seconds_per_image": compute,
        "limit_images_per_second": usable_cores() / (decode + compute),
    }


class RowImages(IterableDataset[torch.Tensor]):
    """The images of Parquet files as a user would write it: each worker of the DataLoader decodes every n-th part."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for index, file in enumerate(sorted(self.source.glob("*.parquet"))):
            parquet = pq.ParquetFile(file)
            for group in range(parquet.num_row_groups):
                if (index + group) % workers == number:
                    for content in parquet.read_row_group(group, ["image"])["image"].to_pylist():
                        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("L"), np.float32) / 255
                        yield torch.from_numpy(pixels)[None]


def resnet_rate(source: Path, workers: int, batch_size: int) -> float:
    """Return the images per second of a plain loop over a DataLoader with ResNet-18."""
    network = ResNet("resnet18", 3, SIDE).eval()
    loader = DataLoader(RowImages(source), batch_size, num_workers=workers)
    count, start = 0, perf_counter()
    with torch.inference_mode():
        for batch in loader:
            count += len(network(batch).argmax(1))
    return count / (perf_counter() - start)


def steady_rate(answers: Path, workers: int) -> float:
    """Return the images per second after each worker has finished its first part: without the start of processes."""
    times = sorted(path.stat().st_mtime for path in answers.glob("part-*.parquet"))
    return PART_SIZE * (len(times) - workers) / (times[-1] - times[workers - 1])


def throughput(images: int, resnet_images: int, engines: list[str]) -> list[dict[str, Any]]:
    """Measure all engines, numbers of workers and batch sizes."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, few = create_images(folder / "images", images), create_images(folder / "few", resnet_images)
        for batch_size in BATCH_SIZES:
            limit = core_limit(source, min(images, 2000), batch_size)
            rows.append({"engine": "limit of the cores", "workers": usable_cores(), "batch_size": batch_size, **limit})
            _show(rows)
            for engine in engines:
                for workers in (1, usable_cores()):
                    output = folder / f"{engine}-{workers}-{batch_size}"
                    options = {"engine": engine, "workers": workers, "batch_size": batch_size, "part_size": PART_SIZE}
                    result = predict_source(MODEL, source, output, unknown="off", **options)
                    rate = result.images / result.seconds
                    steady = steady_rate(output, workers)
                    share = steady / limit["limit_images_per_second"]
                    rates = {"images_per_second": rate, "steady_images_per_second": steady}
                    rows.append({**options, **rates, "share_of_the_limit": share})
                    _show(rows)
        for workers in (0, usable_cores()):
            rate = resnet_rate(few, workers, 64)
            rows.append(
                {"engine": "DataLoader, ResNet-18", "workers": workers, "batch_size": 64, "images_per_second": rate}
            )
            _show(rows)
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    print(json.dumps(rows[-1]), flush=True)


def descendants(root: int) -> dict[int, str]:
    """Return the processes that descend from a process, with their commands, as Linux lists them."""
    parents, commands = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text, command = status.read_text(), (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        number = int(status.parent.name)
        parents[number] = int(text.rsplit(")", 1)[1].split()[1])
        commands[number] = command.replace(b"\0", b" ").decode(errors="replace")
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: commands[process] for process in found if process in commands}


def resident_bytes(process: int) -> int:
    """Return the memory of a process, or 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def finished_share(answers: Path, parts: int) -> float:
    """Return the share of parts that have a file."""
    return len(list(answers.glob("part-*.parquet"))) / parts


def run_until(command: list[str], answers: Path, parts: int, kills: dict[float, str]) -> list[dict[str, Any]]:
    """Run a command, kill processes when shares of the parts are finished, and return memory and kills over time."""
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    start, events, remaining = perf_counter(), [], dict(kills)
    while driver.poll() is None:
        time.sleep(SAMPLE_SECONDS)
        share = finished_share(answers, parts)
        processes = descendants(driver.pid)
        workers = [process for process, text in processes.items() if text.startswith("ray::_predict")]
        events.append(
            {
                "seconds": perf_counter() - start,
                "finished": share,
                "driver_bytes": resident_bytes(driver.pid),
                "worker_bytes": sorted(map(resident_bytes, workers)),
            }
        )
        for at in [at for at in remaining if share >= at]:
            kind = remaining.pop(at)
            target = driver.pid if kind == "driver" else next(iter(workers), None)
            if target is not None:
                os.kill(target, signal.SIGKILL)
                events[-1]["killed"] = kind
                print(f"killed a {kind} with {share:.0%} finished", flush=True)
    events.append({"exit_code": driver.returncode})
    return events


def kills(images: int, part_size: int) -> dict[str, Any]:
    """Predict images through Ray with 2 workers, kill a worker and the driver, continue, and check the answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, answers = create_images(folder / "images", images), folder / "answers"
        parts = sum(1 for _ in find_parts([str(source)], part_size))
        command = [sys.executable, "-m", "tigranet", "predict", MODEL, str(source), "-o", str(answers)]
        command += ["--engine", "ray", "--workers", "2", "--part-size", str(part_size), "--unknown", "off"]
        first = run_until(command, answers, parts, {0.2: "worker", 0.5: "driver"})
        before = {path.name: path.stat().st_mtime_ns for path in answers.glob("part-*.parquet")}
        second = run_until(command, answers, parts, {0.75: "worker"})
        repeated = sum((answers / file).stat().st_mtime_ns != changed for file, changed in before.items())
        names = np.sort(pq.read_table(answers, columns=["path"])["path"].to_numpy())
        manifest = json.loads((answers / "_manifest.json").read_text())
        return {
            "images": images,
            "rows": len(names),
            "lost": images - len(np.unique(names)),
            "twice": len(names) - len(np.unique(names)),
            "manifest_images": manifest["images"],
            "parts": parts,
            "parts_before_the_second_run": len(before),
            "parts_written_again": repeated,
            "runs": [first, second],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("throughput", "kills"))
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--resnet-images", type=int, default=2000)
    parser.add_argument("--part-size", type=int, default=PART_SIZE)
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    parser.add_argument("--output", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.what == "throughput":
        measured: Any = throughput(arguments.images, arguments.resnet_images, arguments.engines)
    else:
        measured = kills(arguments.images, arguments.part_size)
        print(json.dumps({name: value for name, value in measured.items() if name != "runs"}))
    if arguments.output:
        result = {"machine": machine(), "versions": versions(), "arguments": vars(arguments) | {"output": None}}
        arguments.output.write_text(json.dumps(result | {"measured": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
