"""How the kernels read images that are stored pixel by pixel (``pixel_packs.cu``)."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cuda import nvrtc
from tigranet.ops.cuda.grid_constants import real_type
from tigranet.ops.cuda.launch_plan import LaunchPlan
from tigranet.ops.cuda.sources import read_source
from tigranet.ops.fallback import KernelUnavailableError

THREADS = 256
"""Threads of a block, at most. The same number is in ``pixel_packs.cu``."""
PACK_BYTES = 16
"""Bytes that a thread reads or writes at once, where the number of maps and the memory addresses allow it."""
MAX_PIXELS = 2**30
"""Pixels of a whole batch. The kernels count them in 32 bits."""
BYTES_OF_A_SUM = 8

STORED_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
}
"""Types in memory, by their names in ``pixel_packs.cu``."""


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type of the arithmetic, and of parameters and moments, for maps of a type.

    Args:
        dtype: Type of the maps.

    Returns:
        ``torch.float64`` for that type, else ``torch.float32``.
    """
    return torch.float64 if dtype == torch.float64 else torch.float32


def as_pixels(y: Float[Tensor, "batch maps nodes"]) -> Float[Tensor, "batch nodes maps"]:
    """Return maps pixel by pixel, without a copy if they are stored so.

    Args:
        y: Maps.

    Returns:
        The same numbers, contiguous.
    """
    return y.detach().transpose(1, 2).contiguous()


def pack_size(maps: int, *tensors: Tensor) -> int:
    """Return how many maps of a pixel are read together.

    Args:
        maps: Number of maps of a pixel.
        *tensors: All images that are read or written, stored pixel by pixel.

    Returns:
        As many as make :data:`PACK_BYTES` bytes, or 1 if a pixel of one of the images does not start at a multiple of
        that.
    """
    size = PACK_BYTES // tensors[0].itemsize
    is_aligned = maps % size == 0 and all(tensor.data_ptr() % PACK_BYTES == 0 for tensor in tensors)
    return size if is_aligned else 1


def check_pixels(pixels: int) -> None:
    """Check that the kernels can count the pixels of a batch.

    Args:
        pixels: Number of pixels of all images, with their borders.

    Raises:
        KernelUnavailableError: If there are too many.
    """
    if pixels > MAX_PIXELS:
        raise KernelUnavailableError(
            f"expected at most {MAX_PIXELS} pixels in a batch, got {pixels}: use a smaller batch"
        )


class PixelBlocks(NamedTuple):
    """How the pixels of a batch are divided among blocks."""

    columns: int
    """Packs of a pixel that a block reads."""
    rows: int
    """Pixels that a block reads at once."""
    chunks: int
    """Blocks that share the packs of a pixel."""
    pixels_per_block: int
    num_blocks: int
    """Blocks that share the pixels."""

    @classmethod
    def plan(cls, pixels: int, packs: int, least: int, most: int, blocks: int) -> "PixelBlocks":
        """Divide pixels among blocks.

        Args:
            pixels: Number of pixels of all images.
            packs: Number of packs per pixel.
            least: Number of pixels per thread, at least.
            most: The same, at most.
            blocks: Number of blocks that keep the device busy. There are no more, unless each thread has ``most``
                pixels.

        Returns:
            The division.

        Raises:
            KernelUnavailableError: If there are more pixels than the kernels can count.
        """
        check_pixels(pixels)
        chunks = -(-packs // THREADS)
        columns = -(-packs // chunks)
        rows = THREADS // columns
        per_block = rows * min(max(-(-pixels // (rows * blocks)), least), most)
        return cls(columns, rows, chunks, per_block, -(-pixels // per_block))

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along each axis."""
        return self.columns, self.rows, 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along each axis."""
        return self.num_blocks, self.chunks, 1


def launch_plan(itemsize: int) -> LaunchPlan:
    """Plan the launch of the largest kernel, which fits on every GPU.

    Args:
        itemsize: Bytes per number.

    Returns:
        The plan.
    """
    size = PACK_BYTES // itemsize
    sums = THREADS * size * (max(4, itemsize) + BYTES_OF_A_SUM)
    return LaunchPlan((THREADS, 1, 1), (("PACK_SIZE", size),), static_shared_memory=sums)


@lru_cache(maxsize=256)
def pixel_kernel(source: str, name: str, dtype: torch.dtype, pack: int, device: torch.device) -> nvrtc.Kernel:
    """Load a kernel.

    Args:
        source: Name of the source file, without ``.cu``.
        name: Name of the kernel.
        dtype: Type of the maps.
        pack: Number of maps that are read together.
        device: The CUDA device.

    Returns:
        The kernel.

    Raises:
        KernelUnavailableError: If it cannot be compiled or loaded.
    """
    macros: dict[str, Any] = {"STORED": STORED_TYPES[dtype], "REAL": real_type(real_dtype(dtype)), "PACK_SIZE": pack}
    return nvrtc.kernel(name, read_source(source), tuple(macros.items()), 0, True, device)
