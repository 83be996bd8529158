"""Oriented products: how two edges are rotated relative to each other."""

from jaxtyping import Float
from torch import Tensor

from tigranet.graphs.grid import GridLaplacian
from tigranet.graphs.laplacian import Laplacian
from tigranet.layers.product_layer import ProductLayer
from tigranet.ops import oriented_products


class OrientedProduct(ProductLayer):
    r"""Products of image gradients of two mixtures of maps, :math:`f` and :math:`g`.

    Polynomials of L are the same in all directions: they cannot see how two strokes lie relative to each other.
    Gradients can, and they rotate with the image: with :math:`\partial f = f_x + i f_y` and
    :math:`\partial^2 f = f_{xx} - f_{yy} + 2 i f_{xy}`, an image rotated by :math:`\theta` has
    :math:`e^{i\theta} \partial f` and :math:`e^{2i\theta} \partial^2 f`. So

    .. math:: \partial f\, \overline{\partial g} \quad\text{and}\quad \partial^2 f\, \overline{\partial^2 g}

    do not change. The four products are their real parts, :math:`\nabla f \cdot \nabla g` and its equivalent of second
    order, and their imaginary parts, such as :math:`f_y g_x - f_x g_y`. The imaginary parts change sign when the image
    is reflected, and distinguish a shape from its mirror image.

    Every product is exact under quarter turns, and under integer shifts on the torus. For other angles it is as
    accurate as the stencil (:meth:`GridLaplacian.gradient`). The layer needs a grid; :class:`GradientProduct` works on
    other graphs.

    See :class:`ProductLayer` for the arguments and shapes.

    Example:
        >>> import torch
        >>> OrientedProduct(32, pairs=16)(torch.rand(2, 32, 20), GridLaplacian(4, 5)).shape
        torch.Size([2, 96, 20])
    """

    KINDS = 4

    def products(
        self, mixtures: Float[Tensor, "batch mixtures nodes"], laplacian: Laplacian
    ) -> Float[Tensor, "batch products nodes"]:
        """Compute the products of the gradients of f and g.

        Args:
            mixtures: All f, then all g.
            laplacian: The grid.

        Returns:
            One map per pair and kind of product, kind after kind.

        Raises:
            TypeError: If ``laplacian`` is not that of a grid.
        """
        if not isinstance(laplacian, GridLaplacian):
            raise TypeError(
                f"{self!r} needs image gradients, and {laplacian!r} has none: "
                "use GradientProduct, GP in the notation, which needs none"
            )
        return oriented_products(mixtures, laplacian, self.KINDS)
