"""Mean pooling that commutes with quarter turns for maps of any size."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class CentredMeanPool(nn.Module):
    """Mean pooling with windows that are centred on the map and zeros outside it.

    Ordinary pooling drops rows on one side only if ``side`` does not divide the height or width, and then the result is
    no longer centred. Here such an axis of n pixels gives ceil(n / side) means, with the same number of zeros at both
    ends. If that number would not be whole, the windows are one pixel larger.

    Args:
        side: Side length of the windows and distance between them, in pixels.

    Example:
        >>> import torch
        >>> CentredMeanPool(2)(torch.ones(1, 1, 5, 4)).shape
        torch.Size([1, 1, 3, 2])
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, maps: Float[Tensor, "batch maps height width"]) -> Float[Tensor, "batch maps rows columns"]:
        """Pool the maps.

        Args:
            maps: Maps of any size.

        Returns:
            Maps of ceil(height / side) rows and ceil(width / side) columns.
        """
        missing_pixels = [-size % self.side for size in maps.shape[2:]]
        windows = [self.side + missing % 2 for missing in missing_pixels]
        return F.avg_pool2d(maps, windows, self.side, [(missing + 1) // 2 for missing in missing_pixels])

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return str(self.side)
