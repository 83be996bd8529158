"""The dynamic pooling DP in operations that every exporter knows."""

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from tigranet.export.portable_grid import Images
from tigranet.layers.dynamic_pool import DynamicPool

Mask = Bool[Tensor, "batch maps height width"]
"""Sets of pixels, one per map."""


class PortablePool(nn.Module):
    r"""The layer :class:`tigranet.DynamicPool`, for images with any number of pixels.

    An image can have fewer pixels than the number J of active nodes. The number of largest values that are searched is
    therefore min(J, pixels), computed in the graph.

    Args:
        layer: The layer to export.
    """

    def __init__(self, layer: DynamicPool) -> None:
        super().__init__()
        self.num_active, self.strict, self.tolerance = layer.num_active, layer.ties == "strict", layer.tolerance

    def forward(self, z: Images, omega: Bool[Tensor, "batch 1 height width"] | None) -> Mask:
        """Mark the active nodes of each map.

        Args:
            z: Maps.
            omega: Nodes of interest. None for all nodes.

        Returns:
            The mask of active nodes.
        """
        flat = z.flatten(2)
        masked = flat if omega is None else torch.where(omega.flatten(2), flat, -torch.inf)
        count = torch.sym_min(self.num_active, flat.shape[2])
        top = masked.topk(count, dim=-1)
        if self.strict:
            active = torch.zeros_like(flat, dtype=torch.bool).scatter(-1, top.indices, True)
        else:
            smallest = top.values.amin(-1, keepdim=True)
            magnitude = (flat if omega is None else flat * omega.flatten(2)).abs().amax(-1, keepdim=True)
            active = flat >= smallest - self.tolerance * magnitude
        mask = active.reshape(z.shape)
        return mask if omega is None else mask & omega
