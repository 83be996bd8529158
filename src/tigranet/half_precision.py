"""Numbers of 16 bits, and the hardware that computes with them."""

import torch

HALF_TYPES = {"bf16": torch.bfloat16, "16": torch.float16}
"""Types of 16 bits by the names that users write. bfloat16 has the range of float32 and 8 bits of mantissa, float16 has
11 bits and no numbers above 65,504."""
CPU_FEATURES = {torch.bfloat16: ("avx512bf16", "amx-bf16"), torch.float16: ("avx512fp16", "amx-fp16")}
"""Features of a CPU, by LLVM's names, of which one is needed to multiply numbers of a type."""


def computes_with(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a device multiplies numbers of 16 bits itself, instead of converting each to float32.

    Args:
        device: A CPU or a GPU.
        dtype: bfloat16 or float16.

    Returns:
        Whether it does. False also for devices and CPUs about which this is not known.

    Example:
        >>> computes_with(torch.device("meta"), torch.bfloat16)
        False
    """
    if device.type == "cuda":
        return dtype == torch.float16 or torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    try:
        from llvmlite import binding
    except ImportError:
        return False
    features = binding.get_host_cpu_features()
    return any(features.get(feature, False) for feature in CPU_FEATURES[dtype])
