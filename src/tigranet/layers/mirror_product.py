"""Oriented products that do not distinguish a shape from its mirror image."""

from tigranet.layers.oriented_product import OrientedProduct


class MirrorProduct(OrientedProduct):
    """The real parts of the products of :class:`OrientedProduct`, two per pair.

    They do not change when the image is reflected, either.

    See :class:`ProductLayer` for the arguments and shapes.

    Example:
        >>> import torch
        >>> from tigranet import GridLaplacian
        >>> MirrorProduct(32, pairs=16)(torch.rand(2, 32, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 64, 20])
    """

    KINDS = 2
