"""The process that trains: one of several, perhaps, and of use to its owner afterwards."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning.fabric.utilities.rank_zero import rank_zero_only


@contextmanager
def left_as_it_was() -> Iterator[None]:
    """What Lightning changes in the process is after it as it was before: random numbers, whether operations are
    deterministic, and how much Lightning says (within, no tips and no list of devices)."""
    mode = torch.get_deterministic_debug_mode()
    loggers = {logger: logger.level for logger in map(logging.getLogger, ("lightning.pytorch", "lightning.fabric"))}
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        for logger, level in loggers.items():
            logger.setLevel(level)


def is_first_process() -> bool:
    """Whether this is the process, of several that train together, that speaks for all of them."""
    return int(getattr(rank_zero_only, "rank", 0) or 0) == 0
