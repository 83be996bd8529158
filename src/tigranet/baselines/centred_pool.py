"""Mean pooling that commutes with quarter turns, whatever the size of the maps."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class CentredMeanPool(nn.Module):
    """Means over squares of ``side``, ``side`` apart and centred on the map; zeros from outside.

    A side that is no divisor of the height or width would leave rows over on one side only, and what was centred
    would no longer be. Where such an axis has n pixels, it gets ceil(n / side) means with equally many zeros at both
    ends, over one pixel more if that is what evens them out.

    >>> import torch
    >>> CentredMeanPool(2)(torch.ones(1, 1, 5, 4)).shape
    torch.Size([1, 1, 3, 2])
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, maps: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps rows columns"]:
        lacking = [-size % self.side for size in maps.shape[2:]]
        window = [self.side + lack % 2 for lack in lacking]
        return F.avg_pool2d(maps, window, self.side, [(lack + 1) // 2 for lack in lacking])

    def extra_repr(self) -> str:
        return str(self.side)
