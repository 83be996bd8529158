"""Oriented products: how two edges are turned against each other."""

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian
from tigranet.kernels import fused_products
from tigranet.layers.products import Products


class OrientedProduct(Products):
    r"""Products of image gradients of two mixtures of maps, :math:`f` and :math:`g`.

    Polynomials of L look alike in all directions: they cannot see how two strokes lie to each other. Gradients can,
    and turn with the image: with :math:`\partial f = f_x + i f_y` and
    :math:`\partial^2 f = f_{xx} - f_{yy} + 2 i f_{xy}`, an image turned by :math:`\theta` has
    :math:`e^{i\theta} \partial f` and :math:`e^{2i\theta} \partial^2 f`. So

    .. math:: \partial f\, \overline{\partial g} \quad\text{and}\quad \partial^2 f\, \overline{\partial^2 g}

    stay what they are. The four products are their real parts, :math:`\nabla f \cdot \nabla g` and its like of second
    order, and their imaginary parts, such as :math:`f_y g_x - f_x g_y`: these change sign when the image is reflected,
    and tell a shape from its mirror image.

    Every product is exact under quarter turns, and under integer shifts on the torus; for other angles it is as good
    as the stencil is (:meth:`GridLaplacian.gradient`). It needs a grid: see :class:`GradientProduct` for other graphs.

    >>> OrientedProduct(32, pairs=16)(torch.rand(2, 32, 20), GridLaplacian(4, 5)).shape
    torch.Size([2, 96, 20])
    """

    KINDS = 4

    def products(
        self, f: Float[Tensor, "batch pairs nodes"], g: Float[Tensor, "batch pairs nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        if not isinstance(laplacian, GridLaplacian):
            cure = "use GradientProduct, GP in the notation, which needs none"
            raise TypeError(f"{self!r} needs image gradients, and {laplacian!r} has none: {cure}")
        return _products(f, g, laplacian, self.KINDS == 2)


class MirrorProduct(OrientedProduct):
    """The real parts alone, two products a pair: they stay what they are when the image is reflected, too.

    >>> MirrorProduct(32, pairs=16)(torch.rand(2, 32, 20), GridLaplacian(4, 5)).shape
    torch.Size([2, 64, 20])
    """

    KINDS = 2


@fused_products
def _products(
    f: Float[Tensor, "batch pairs nodes"],
    g: Float[Tensor, "batch pairs nodes"],
    laplacian: GridLaplacian,
    mirrored: bool,
) -> Float[Tensor, "batch products nodes"]:
    """Real and imaginary parts of first and second order, kind after kind; the real ones alone if ``mirrored``."""
    first = laplacian.gradient(f), laplacian.gradient(g)
    second = laplacian.twist(first[0]), laplacian.twist(first[1])
    parts = []
    for (a, b), (c, d) in (first, second):  # (a + i b)(c - i d)
        parts.append(a * c + b * d)
        if not mirrored:
            parts.append(b * c - a * d)
    return torch.cat(parts, dim=1)
