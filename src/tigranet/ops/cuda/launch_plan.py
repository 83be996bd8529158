"""How a kernel is compiled and launched for one size, as a value that can be checked without a GPU."""

from typing import Any, NamedTuple

from tigranet.ops.cuda.limits import MAX_STATIC_SHARED_MEMORY, DeviceLimits

Macros = tuple[tuple[str, Any], ...]
Block = tuple[int, int, int]

MIN_REGISTERS = 32
"""Registers per thread that suffice for every kernel: all declare their block size, and the compiler moves what does
not fit into registers to memory."""


class LaunchPlan(NamedTuple):
    """The block of a kernel and what it uses."""

    block: Block
    """Threads along each axis."""
    macros: Macros
    """Sizes that are compiled into the kernel."""
    dynamic_shared_memory: int = 0
    """Bytes whose number is set at launch."""
    static_shared_memory: int = 0
    """Bytes that the kernel declares."""
    registers: int = MIN_REGISTERS
    """Registers that each thread needs, at most 255."""
    maps_per_block: int = 1

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def why_too_large(self, limits: DeviceLimits, subject: str) -> str | None:
        """Compare the plan with the limits of a device.

        Args:
            limits: The limits.
            subject: What needs the resources, such as ``"a 224x224 map"``.

        Returns:
            The first limit that is exceeded, in words, or None.
        """
        shared_memory = self.dynamic_shared_memory + self.static_shared_memory
        if shared_memory > limits.shared_memory_per_block:
            return (
                f"{subject} needs {_kib(shared_memory)} of shared memory, "
                f"this device has {_kib(limits.shared_memory_per_block)} per block"
            )
        if self.static_shared_memory > MAX_STATIC_SHARED_MEMORY:
            return (
                f"{subject} needs {_kib(self.static_shared_memory)} of static shared memory, "
                f"CUDA allows {_kib(MAX_STATIC_SHARED_MEMORY)}"
            )
        if self.threads > limits.threads_per_block:
            return f"{subject} needs {self.threads} threads, this device has {limits.threads_per_block} per block"
        if self.threads * self.registers > limits.registers_per_block:
            return (
                f"{subject} needs {self.threads * self.registers} registers, "
                f"this device has {limits.registers_per_block} per block"
            )
        return None


def _kib(size: int) -> str:
    """Write a number of bytes in KiB, rounded up."""
    return f"{-(-size // 1024)} KiB"
