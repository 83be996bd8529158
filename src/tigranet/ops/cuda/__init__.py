"""Fused kernels for NVIDIA GPUs: CUDA C++ that PyTorch's own NVRTC compiles at run time for the size of the grid.

CUDA C++ because the statistics need a map to stay in registers, with neighbours read by shuffles and every loop
unrolled. The same statistics at 26 x 26 took 1.4 times as long in numba-cuda on an H200 and 6.0 times as long in
Triton, which has no shuffles (``python -m benchmarks.languages``, ``results/benchmarks-cuda.csv``). NVRTC comes with
PyTorch, so users need no compiler. Compiled kernels are stored on disk for the next process.

Each module launches the kernels of one operation, which are in the ``.cu`` file of the same name. Maps that fit in
registers or in shared memory stay there for all orders; larger ones are streamed from memory, one launch per order.
The kernels of the pyramid networks read images of any size pixel by pixel (``pixel_packs.cu``), also in half precision.
"""

from functools import cache

import torch

from tigranet import torch_compat
from tigranet.ops.cuda import nvrtc


def why_unavailable(device: torch.device) -> str | None:
    """Say why no CUDA kernel can run on a device, without trying to compile one.

    Args:
        device: A CUDA device.

    Returns:
        The reason, or None if nothing is known that prevents it.
    """
    return _missing_interface(device) or nvrtc.why_not_compiling()


@cache
def _missing_interface(device: torch.device) -> str | None:
    """Name the private PyTorch function or the driver library that is missing."""
    try:
        torch_compat.nvrtc_compile()
        torch_compat.load_cuda_module()
        torch_compat.cuda_driver_library()
    except torch_compat.MissingTorchAPIError as error:
        return str(error)
    except (OSError, AttributeError) as error:
        return f"the library of the CUDA driver cannot be loaded: {error}"
    return None
