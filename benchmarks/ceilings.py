"""The limits of the machine: memory bandwidth and arithmetic throughput."""

import torch

from benchmarks.timing import DEVICE, seconds_of_one_call


def measure() -> dict[str, float]:
    """Measure the bandwidth of a copy that is larger than the caches, and the GFLOP/s of a matrix product.

    Returns:
        ``copy_gb_per_s`` (bytes read plus bytes written) and ``matmul_gflop_per_s``.
    """
    source = torch.rand(2**28 if DEVICE.type == "cuda" else 2**25, device=DEVICE)
    target = torch.empty_like(source)
    copy_seconds = min(seconds_of_one_call(lambda: target.copy_(source)) for _ in range(10))
    return {
        "copy_gb_per_s": 2 * source.nbytes / copy_seconds / 1e9,
        "matmul_gflop_per_s": product_gflop_per_s(2048, DEVICE),
    }


def product_gflop_per_s(side: int, device: torch.device, calls: int = 10) -> float:
    """Return the GFLOP/s of the fastest of several products of a square float32 matrix with itself.

    Args:
        side: Number of rows and columns.
        device: Where to compute.
        calls: Number of products.
    """
    a = torch.rand(side, side, device=device)
    return 2 * side**3 / min(seconds_of_one_call(lambda: a @ a) for _ in range(calls)) / 1e9
