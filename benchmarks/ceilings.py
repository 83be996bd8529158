"""What the machine can do: bytes copied and numbers multiplied in a second."""

import torch

from benchmarks.timing import DEVICE, once


def measure() -> dict[str, float]:
    """Gigabytes a second read and written by a copy larger than the caches, and GFLOP/s of a matrix product."""
    source = torch.rand(2**28 if DEVICE.type == "cuda" else 2**25, device=DEVICE)
    target, a = torch.empty_like(source), torch.rand(2048, 2048, device=DEVICE)
    copied = min(once(lambda: target.copy_(source)) for _ in range(10))
    multiplied = min(once(lambda: a @ a) for _ in range(10))
    return {"copy_gb_per_s": 2 * source.nbytes / copied / 1e9, "matmul_gflop_per_s": 2 * 2048**3 / multiplied / 1e9}
