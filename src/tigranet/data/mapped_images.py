"""Space for many images: in memory, or in a temporary file that is mapped into memory if they are large."""

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.cache_folder import cache_folder

MAX_BYTES_IN_MEMORY = 2**30
"""Larger tensors are kept in a temporary file that is mapped into memory."""


def empty_images(*shape: int) -> Float[Tensor, "count maps height width"]:
    """Return a tensor for images whose values are still to be written.

    A tensor of more than :data:`MAX_BYTES_IN_MEMORY` bytes is a file without a name, mapped into memory: the system
    reads and writes the parts that are in use, and takes their memory back when it is needed elsewhere. The file is in
    the cache folder, because the folder for temporary files is often in memory itself; if the cache folder cannot be
    written or has no space, it is in the folder for temporary files after all. Its whole space is reserved first. The
    file disappears with the tensor.

    Args:
        *shape: Number of images, channels, height and width.

    Returns:
        The tensor, in float32.

    Raises:
        OSError: If no folder has space for the file.
    """
    num_bytes = 4 * math.prod(shape)
    if num_bytes <= MAX_BYTES_IN_MEMORY:
        return torch.empty(shape)
    with _temporary_file(num_bytes) as file:
        return torch.from_numpy(np.memmap(file, np.float32, "r+", shape=shape))


@contextmanager
def _temporary_file(num_bytes: int) -> Iterator[IO[bytes]]:
    """Open a file without a name in the first folder that has space for it."""
    reasons = []
    for folder in (cache_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            reasons.append((folder, error))
            continue
        with file:
            try:
                _reserve(file, num_bytes)
            except OSError as error:
                reasons.append((folder, error))
                continue
            yield file
            return
    details = "; ".join(f"'{folder}': {error.strerror or error}" for folder, error in reasons)
    raise OSError(
        reasons[0][1].errno,
        f"cannot write a temporary file of {num_bytes / 2**30:.1f} GiB for the images ({details}): set TIGRANET_CACHE "
        "to a folder with more space, or use a smaller image size",
    )


def _reserve(file: IO[bytes], num_bytes: int) -> None:
    """Reserve the space of a file, so that writing to its mapped memory cannot fail later, which ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, num_bytes)
    else:
        file.truncate(num_bytes)
