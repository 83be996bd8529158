"""The state of the process that trains: random generators, deterministic mode, log levels and rank."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

LIGHTNING_LOGGERS = ("lightning.pytorch", "lightning.fabric")


@contextmanager
def preserve_lightning_settings() -> Iterator[None]:
    """Restore after the block the process-wide settings that Lightning changes.

    These are the deterministic mode of PyTorch and the levels of Lightning's loggers. Within the block, Lightning logs
    warnings only: no tips and no list of devices.
    """
    deterministic_mode = torch.get_deterministic_debug_mode()
    levels = {logger: logger.level for logger in map(logging.getLogger, LIGHTNING_LOGGERS)}
    for logger in levels:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(deterministic_mode)
        for logger, level in levels.items():
            logger.setLevel(level)


@contextmanager
def preserve_random_state(device: torch.device | None = None) -> Iterator[None]:
    """Restore the random generators of the CPU and of ``device`` after the block.

    Other devices are neither saved nor restored, so seed with :func:`seed_generators` within the block, which leaves
    them alone. ``torch.manual_seed`` would seed the generators of all devices.

    Args:
        device: The device that computes within the block. None for the CPU.
    """
    cuda_devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda_devices):
        yield


def seed_generators(seed: int, device: torch.device | None = None) -> None:
    """Seed the random generators of the CPU and of ``device``, and no others.

    Args:
        seed: The seed.
        device: The device that computes. None for the CPU.
    """
    torch.default_generator.manual_seed(seed)
    if device is None or device.type == "cpu":
        return
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    else:
        torch.get_device_module(device).manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's random numbers on the CPU within the block, and restore them afterwards.

    Args:
        seed: The seed.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(2)
        >>> with seeded(0):
        ...     second = torch.rand(2)
        >>> torch.equal(first, second)
        True
    """
    with preserve_random_state():
        seed_generators(seed)
        yield


def is_first_process() -> bool:
    """Whether this is the first of the processes that train together: the one that prints and writes files.

    Returns:
        True for the process of rank 0, also when there is only one process.
    """
    from lightning.fabric.utilities.rank_zero import rank_zero_only  # imported here because it loads all of Lightning

    return int(getattr(rank_zero_only, "rank", 0) or 0) == 0
