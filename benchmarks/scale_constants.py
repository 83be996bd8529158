"""Measure the constants of the cost model: decoding, requests, transfer, answers, and the work of the driver.

    .venv-engines/bin/python -m benchmarks.scale_constants --output results/scale-constants.json

All times are processor times of the process that reads or sends, in one thread, the median of several rounds; that of
the driver is wall-clock time. Images are synthetic: smooth shapes with noise, so that compressed files have about the
size of pictures of plankton and of ordinary photographs. The object store is moto's S3 server in another process: what
a request costs the client is measured, and what the network and the store of a cloud give are assumptions (see
:mod:`benchmarks.scale_model`).
"""

import argparse
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from tigranet.data.image_content import ImageContent
from tigranet.evaluation.provenance import machine, versions
from tigranet.workflows.bulk_prediction import ray_engine
from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.part_predictor import AnswerOptions, Job, PartAnswer
from tigranet.workflows.bulk_prediction.parts import FilePart

ROUNDS = 5
SHARD_BYTES = 2**25
START_SECONDS = 60

PICTURES = {
    "plankton": {"size": (64, 64), "mode": "L", "format": "PNG", "options": {}, "side": 64},
    "photographs": {"size": (500, 375), "mode": "RGB", "format": "JPEG", "options": {"quality": 85}, "side": 224},
}
"""For each kind of image: how it is stored, and the side length in pixels that a network reads."""


def example_file(kind: str, seed: int) -> bytes:
    """Return the content of an image file of a kind."""
    picture, rng = PICTURES[kind], np.random.default_rng(seed)
    width, height = picture["size"]
    channels = (3,) if picture["mode"] == "RGB" else ()
    noise = Image.fromarray(rng.integers(0, 256, (height, width, *channels), dtype=np.uint8))
    smooth = np.asarray(noise.filter(ImageFilter.GaussianBlur(3)), np.float32)
    pixels = np.clip((smooth - 127) * 4 + 127 + rng.normal(0, 2, smooth.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, picture["format"], **picture["options"])
    return file.getvalue()


def median_time(action: Callable[[], int], rounds: int = ROUNDS) -> float:
    """Return the median processor time per unit of an action that returns its number of units."""
    times = []
    for _ in range(rounds):
        start = process_time()
        units = action()
        times.append((process_time() - start) / units)
    return median(times)


def decoding(kind: str, count: int) -> dict[str, float]:
    """Measure the size of files of a kind, and the time to decode and scale one."""
    files = [example_file(kind, seed) for seed in range(20)]
    side, color = PICTURES[kind]["side"], PICTURES[kind]["mode"] == "RGB"

    def decode() -> int:
        for number in range(count):
            ImageContent("a", files[number % len(files)]).square(side, color)
        return count

    decode()
    return {"image_bytes": float(np.mean([len(file) for file in files])), "decode_seconds": median_time(decode)}


@contextmanager
def object_store() -> Iterator[None]:
    """Run moto's S3 server in another process, and let the environment point to it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
    }
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def requests(count: int) -> dict[str, float]:
    """Measure what reading small objects and large ones costs the client."""
    from tigranet.remote_files import RemoteFiles

    with object_store():
        import fsspec

        fsspec.filesystem("s3").mkdir("bucket")
        files = RemoteFiles("s3://bucket")
        files.write("s3://bucket/small", b"x" * 3000)
        files.write("s3://bucket/large", os.urandom(SHARD_BYTES))

        def read_small() -> int:
            for _ in range(count):
                files.read("s3://bucket/small")
            return count

        def read_large() -> int:
            return len(files.read("s3://bucket/large"))

        read_small()
        return {"request_seconds": median_time(read_small), "transfer_seconds_per_byte": median_time(read_large)}


def _no_work(job: Job, number: int, part: FilePart) -> PartAnswer:
    return PartAnswer(number, part.images, 0)


def driver(parts: int) -> float:
    """Measure the seconds that the driver of a Ray run needs for a part if the workers have nothing to do."""
    import ray

    original = ray_engine._predict_part
    job = Job("m", AnswerOptions(), AnswerFolder("/none"), "sum", threads=1)
    part = FilePart(tuple(f"s3://bucket/shards/{number:09d}" for number in range(4)))
    ray_engine._predict_part = _no_work
    try:
        ray_engine._start(ray, None)
        run = ray_engine._run(ray, job, iter([(number, part) for number in range(parts)]), None)
        for _ in range(parts // 4):  # the workers start
            next(run)
        start = perf_counter()
        count = sum(1 for _ in run)
        return (perf_counter() - start) / count
    finally:
        ray_engine._predict_part = original
        ray.shutdown()


def answers(rows: int) -> float:
    """Return the bytes of an answer in a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"s3://bucket/photos/{number:09d}.png" for number in range(rows)]
    labels = [f"class {number}" for number in rng.integers(0, 100, rows)]
    file = io.BytesIO()
    table = {
        "path": names,
        "label": labels,
        "probability": rng.random(rows).round(6),
        "error": pa.nulls(rows, pa.string()),
    }
    pq.write_table(pa.table(table), file)
    return len(file.getvalue()) / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=200, help="number of images of a round")
    parser.add_argument("--requests", type=int, default=200, help="number of requests of a round")
    parser.add_argument("--parts", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("results/scale-constants.json"))
    arguments = parser.parse_args()
    measured: dict[str, Any] = {kind: decoding(kind, arguments.images) for kind in PICTURES}
    measured |= requests(arguments.requests)
    measured |= {"driver_seconds_per_part": driver(arguments.parts), "answer_bytes": answers(4096)}
    record = {"machine": machine(), "versions": versions(), **measured}
    arguments.output.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
