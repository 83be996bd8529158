"""A plain loop over a DataLoader: what many programs for predictions look like, to compare with."""

import io
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class RowImages(IterableDataset[torch.Tensor]):
    """The images of Parquet files: each worker of the DataLoader decodes every n-th row group."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for file in sorted(self.source.glob("*.parquet")):
            parquet = pq.ParquetFile(file)
            for group in range(parquet.num_row_groups):
                if group % workers == number:
                    for content in parquet.read_row_group(group, ["image"])["image"].to_pylist():
                        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("L"), np.float32) / 255
                        yield torch.from_numpy(pixels)[None]


def loader_rate(network: nn.Module, source: Path, workers: int, batch_size: int) -> float:
    """Return the images per second of a loop, without its first batch, in which workers start and kernels are loaded.

    Args:
        network: The network.
        source: Folder of Parquet files with grey images of equal size.
        workers: Number of processes that decode. With 0, the loop decodes.
        batch_size: Number of images that are computed at once.
    """
    network.eval()
    count, start = 0, 0.0
    with torch.inference_mode():
        for batch in DataLoader(RowImages(source), batch_size, num_workers=workers):
            answers = network(batch).argmax(1)
            if not start:
                start = perf_counter()
            else:
                count += len(answers)
    return count / (perf_counter() - start)
