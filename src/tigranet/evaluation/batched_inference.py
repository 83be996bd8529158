"""Inference in batches: the one loop that every evaluation, prediction and feature extraction uses."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tigranet.evaluation.image_threads import apply_in_threads
from tigranet.freed_memory import keep_freed_memory

NOT_FINITE = "the network gives no finite answer for"
"""Beginning of the reason why an image has no prediction and no features."""


def module_device(module: nn.Module) -> torch.device:
    """Return the device of a module.

    Args:
        module: The module.

    Returns:
        The device of its first parameter or buffer, or the CPU if it has none.
    """
    return next((tensor.device for tensor in (*module.parameters(), *module.buffers())), torch.device("cpu"))


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode and compute no gradients within the block.

    The mode of the module and of each of its parts is restored afterwards, also after an error. On the CPU, memory that
    one batch frees is kept for the next one.

    Args:
        module: The module.
    """
    modes = {part: part.training for part in module.modules()}
    try:
        module.eval()
        with torch.inference_mode(), keep_freed_memory(module_device(module).type == "cpu"):
            yield
    finally:
        for part, training in modes.items():
            part.training = training


def apply_in_batches(
    module: nn.Module,
    batches: Iterable[Tensor],
    function: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Apply a module, or a function that uses it, to images batch by batch.

    Each batch is moved to the device of the module, which is in evaluation mode. No more than two batches of
    ``batches`` are needed at a time, so an iterator that reads or transforms images on the fly keeps memory bounded. On
    a CPU with several cores, parts of a batch are computed at the same time, while the next one is read, see
    :func:`~tigranet.evaluation.image_threads.apply_in_threads`.

    Args:
        module: The module.
        batches: At least one batch of images, for example ``images.split(64)``.
        function: What to apply to each batch. Its result for one image must not depend on the other images, and it is
            called from several threads. None applies ``module``.

    Returns:
        The outputs of all batches, concatenated, on the CPU.

    Shape:
        Each batch is (batch, maps, height, width), where the last batch may be smaller. The result is (count, ...).

    Example:
        >>> apply_in_batches(nn.Flatten(), torch.zeros(5, 1, 2, 3).split(2)).shape
        torch.Size([5, 6])
    """
    device = module_device(module)
    with inference(module):
        return torch.cat([*apply_in_threads(function or module, (batch.to(device) for batch in batches))]).cpu()


def require_finite(outputs: Tensor) -> Tensor:
    """Check that a network has a finite answer for every image.

    Args:
        outputs: The outputs of the network.

    Returns:
        The same outputs.

    Raises:
        ValueError: If there is NaN or infinity among them.

    Shape:
        ``outputs`` is (count, ...).
    """
    is_finite = outputs.flatten(1).isfinite().all(1)
    if not is_finite.all():
        count, first = int((~is_finite).sum()), int((~is_finite).nonzero()[0])
        raise ValueError(
            f"{NOT_FINITE} {count} of {len(outputs)} images, the first at position {first}: its weights or the pixels "
            "are too large, train it again or scale the pixels to [0, 1]"
        )
    return outputs
