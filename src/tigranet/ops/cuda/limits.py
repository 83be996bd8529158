"""What one thread block may use on a device: shared memory, threads and registers."""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import torch

from tigranet import torch_compat

MAX_STATIC_SHARED_MEMORY = 48 * 1024
"""Bytes of shared memory that a kernel may declare on every device. Beyond it the size is set at launch."""

_THREADS_ATTRIBUTE, _REGISTERS_ATTRIBUTE, _SHARED_MEMORY_ATTRIBUTE = 1, 12, 97
"""Numbers of the attributes MAX_THREADS_PER_BLOCK, MAX_REGISTERS_PER_BLOCK and MAX_SHARED_MEMORY_PER_BLOCK_OPTIN."""


class DeviceLimits(NamedTuple):
    """The resources of one thread block."""

    shared_memory_per_block: int
    """Bytes, including those that a kernel has to ask for explicitly."""
    threads_per_block: int
    registers_per_block: int


SMALLEST_LIMITS = DeviceLimits(MAX_STATIC_SHARED_MEMORY, 1024, 32 * 1024)
"""What every GPU that PyTorch supports offers."""


@torch_compat.constant_while_tracing
def device_limits(device: torch.device) -> DeviceLimits:
    """Return the limits of a device.

    Args:
        device: A CUDA device.

    Returns:
        Its limits, read once per device. A limit that neither the driver nor PyTorch tells is that of
        :data:`SMALLEST_LIMITS`.
    """
    return _read_limits(device)


@cache
def _read_limits(device: torch.device) -> DeviceLimits:
    properties = torch.cuda.get_device_properties(device)
    index = torch.cuda.current_device() if device.index is None else device.index
    shared_memory = _driver_attribute(_SHARED_MEMORY_ATTRIBUTE, index) or _property(
        properties, "shared_memory_per_block_optin", "shared_memory_per_block"
    )
    threads = _driver_attribute(_THREADS_ATTRIBUTE, index) or _property(properties, "max_threads_per_block")
    registers = _driver_attribute(_REGISTERS_ATTRIBUTE, index) or _property(properties, "regs_per_block")
    smallest = SMALLEST_LIMITS
    return DeviceLimits(
        shared_memory or smallest.shared_memory_per_block,
        threads or smallest.threads_per_block,
        registers or smallest.registers_per_block,
    )


def _driver_attribute(attribute: int, index: int) -> int | None:
    """Ask the CUDA driver for an attribute of a device; None where it does not answer."""
    value, device = ctypes.c_int(), ctypes.c_int()
    try:
        driver = torch_compat.cuda_driver_library()
        failed = driver.cuDeviceGet(ctypes.byref(device), index)
        failed = failed or driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    except (torch_compat.MissingTorchAPIError, OSError, AttributeError):
        return None
    return None if failed else value.value


def _property(properties: Any, *names: str) -> int | None:
    """Return the first property that this version of PyTorch has."""
    return next((getattr(properties, name) for name in names if hasattr(properties, name)), None)
