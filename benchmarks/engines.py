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
