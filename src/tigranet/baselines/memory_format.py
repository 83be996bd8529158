"""The order of maps in the memory of a GPU."""

import torch
from jaxtyping import Float
from torch import Tensor


def channels_last_on_gpu(
    maps: Float[Tensor, "batch maps height width"],
) -> Float[Tensor, "batch maps height width"]:
    """Store all maps of a pixel next to each other if they are on a GPU.

    Convolutions with 16-bit numbers are faster in this order, because tensor cores read it. The values do not change.
    On the CPU, the maps stay as they are.

    Args:
        maps: The maps.

    Returns:
        The same maps. They are copied only if they are on a GPU in another order.

    Example:
        >>> maps = torch.rand(2, 3, 4, 5)
        >>> channels_last_on_gpu(maps) is maps
        True
    """
    return maps.contiguous(memory_format=torch.channels_last) if maps.is_cuda else maps
