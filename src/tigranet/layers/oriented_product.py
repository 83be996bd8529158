"""Oriented products: how two edges are turned against each other."""

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.grid import GridLaplacian, Vector
from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.products import Products
from tigranet.ops import fused_products


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
        self, mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        if not isinstance(laplacian, GridLaplacian):
            cure = "use GradientProduct, GP in the notation, which needs none"
            raise TypeError(f"{self!r} needs image gradients, and {laplacian!r} has none: {cure}")
        return oriented(mixtures, laplacian, self.KINDS)


class MirrorProduct(OrientedProduct):
    """The real parts alone, two products a pair: they stay what they are when the image is reflected, too.

    >>> MirrorProduct(32, pairs=16)(torch.rand(2, 32, 20), GridLaplacian(4, 5)).shape
    torch.Size([2, 64, 20])
    """

    KINDS = 2


@fused_products
def oriented(
    mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: GridLaplacian, kinds: int
) -> Float[Tensor, "batch products nodes"]:
    """The products of f and g, of first order and of second; behind each real part the imaginary one, if ``kinds`` is
    4 and not 2."""
    f, g = mixtures.chunk(2, dim=1)
    f1, g1 = laplacian.gradient(f), laplacian.gradient(g)
    f2, g2 = laplacian.twist(f1), laplacian.twist(g1)
    parts = [real(f1, g1), imaginary(f1, g1), real(f2, g2), imaginary(f2, g2)]
    return torch.cat(parts if kinds == 4 else parts[::2], dim=1)


def real(a: Vector, b: Vector) -> Float[Tensor, "*batch nodes"]:
    """Of a times the conjugate of b."""
    return a[0] * b[0] + a[1] * b[1]


def imaginary(a: Vector, b: Vector) -> Float[Tensor, "*batch nodes"]:
    """Of a times the conjugate of b."""
    return a[1] * b[0] - a[0] * b[1]
