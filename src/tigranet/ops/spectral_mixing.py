r"""Mixing and filtering maps on a torus by their Fourier coefficients, on the CPU.

The operation is :math:`z = \sum_m T_m(\tilde L)\, A_m\, y`, where the matrices :math:`A_m` mix maps. On a torus,
:math:`\tilde L` is diagonal in a Fourier basis. Let :math:`\hat y_f` be the coefficients of all maps at frequency f,
and :math:`\mu_f` its eigenvalue. Then

.. math:: \hat z_f = W(\mu_f)\, \hat y_f, \qquad W(\mu) = \sum_m T_m(\mu)\, A_m .

This takes one product per frequency, where mixing at each node takes one per node and order. The matrices W are little
work, as they are the same for all images and for all frequencies of one eigenvalue. The gradients have the same form:

.. math:: \hat g^{\,y}_f = W(\mu_f)^T\, \hat g_f, \qquad g^{A_m} = \sum_f T_m(\mu_f)\, \hat g_f\, \hat y_f^T .

Coefficients are stored as (frequencies, images, maps). The frequencies of a group have the same eigenvalue and follow
each other (:mod:`tigranet.ops.torus_frequencies`), so that the coefficients of groups of one size are a tensor
(groups, size * images, maps), and all their products with W are one call. Our own kernels compute them, so that the
sums of an image have the same bits whatever its place in the batch is.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.ops.cpu.arrays import PIECE_BYTES, VECTOR_BYTES, as_array
from tigranet.ops.cpu.thread_pool import share
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.map_products import kernels_pay
from tigranet.ops.torus_frequencies import axis, chebyshev_values, multiply_adds, torus_frequencies

MAX_SPECTRUM_BYTES = 8 * 1024 * 1024
"""Approximate size of the coefficients that are computed before they are mixed."""
MIN_IMAGES = 4
"""Images whose coefficients are computed before they are mixed, also where they are larger. With fewer images, the
matrices W take longer than the products with them."""
MAX_WEIGHT_BYTES = 512 * 1024
"""Approximate size of the matrices W that are made before they are read: the cache of a core holds them."""

# Measured costs, in multiply-adds of a large matrix product
COST_OF_OWN_PRODUCT = 0.5
"""One multiply-add of mixing at a node, where our kernels of :mod:`tigranet.ops.map_products` do it."""
COST_OF_RECURRENCE = 20
"""One step of Clenshaw's recurrence at one node."""
COST_OF_SPECTRAL_PRODUCT = 1.0
"""One multiply-add of the products with W."""
COST_OF_WEIGHT = 4
"""One multiply-add of a matrix W."""
COST_OF_VALUE = 70
"""Folding one value of a map along both axes, and moving it through memory."""
COST_OF_TRANSFORM = 0.85
"""One multiply-add of a transform."""
COST_OF_CALL = 2_000_000
"""Starting all products and kernels of one call."""
MIN_GAIN = 0.9
"""Largest ratio of the costs for which mixing by coefficients is chosen."""


def pays(weights: Tensor, y: Tensor, degree: int, grid: GridSpec) -> bool:
    """Return whether mixing by coefficients is expected to be faster than mixing at each node.

    Args:
        weights: The weights, ((degree + 1) * maps, in_maps).
        y: Maps on the CPU, (batch, in_maps, nodes).
        degree: The highest order.
        grid: The grid.

    Returns:
        True on a torus with enough images, maps and orders, and not too many pixels.
    """
    batch, in_maps, nodes = y.shape
    maps = weights.shape[0] // (degree + 1)
    if not (grid.wraps_rows and grid.wraps_columns) or batch == 0:
        return False
    images = batch // _number_of_parts(y)  # in the smallest part
    if images * min(in_maps, maps) * y.itemsize < PIECE_BYTES:
        return False
    if min(nodes, in_maps, maps) * y.itemsize < VECTOR_BYTES:
        return False
    pairs = (grid.height // 2 + 1) * (grid.width // 2 + 1)
    groups = pairs if grid.height != grid.width else (pairs + grid.height // 2 + 1) // 2
    steps = multiply_adds(grid.height) / grid.height + multiply_adds(grid.width) / grid.width
    cost_of_product = COST_OF_OWN_PRODUCT if kernels_pay(weights, y) else 1
    by_node = nodes * maps * (cost_of_product * in_maps * (degree + 1) + COST_OF_RECURRENCE * degree)
    by_frequency = (
        COST_OF_SPECTRAL_PRODUCT * nodes * maps * in_maps
        + COST_OF_WEIGHT * groups * maps * in_maps * (degree + 1) / images
        + nodes * (in_maps + maps) * (COST_OF_VALUE + COST_OF_TRANSFORM * steps)
        + COST_OF_CALL / batch
    )
    return bool(by_frequency < MIN_GAIN * by_node)


def forward(
    weights: Float[Tensor, "orders_and_maps in_maps"],
    y: Float[Tensor, "batch in_maps nodes"],
    degree: int,
    grid: GridSpec,
) -> Float[Tensor, "batch maps nodes"]:
    """Mix and filter maps.

    Args:
        weights: The weights of all maps for order 0, then for order 1, and so on.
        y: Maps on the CPU.
        degree: The highest order.
        grid: A torus for which :func:`pays` is true.

    Returns:
        The sums.
    """
    maps = len(weights) // (degree + 1)
    z = y.new_empty(len(y), maps, grid.num_nodes)
    transposed = weights.reshape(degree + 1, maps, -1).transpose(1, 2).contiguous()
    for part in _parts(y):
        y_hat = to_spectrum(y[part], grid)
        z_hat = y.new_empty(grid.num_nodes, y_hat.shape[1], maps)
        for t, frequencies in _groups(grid, transposed):
            w = _spectral_weights(t, transposed)
            _multiply(_by_group(y_hat, frequencies, t), w, _by_group(z_hat, frequencies, t))
        from_spectrum(z_hat, grid, z[part])
    return z


def backward(
    g: Float[Tensor, "batch maps nodes"],
    weights: Float[Tensor, "orders_and_maps in_maps"],
    y: Float[Tensor, "batch in_maps nodes"],
    degree: int,
    grid: GridSpec,
) -> tuple[Float[Tensor, "orders_and_maps in_maps"], Float[Tensor, "batch in_maps nodes"]]:
    """Compute the gradients of :func:`forward`.

    Args:
        g: The gradient by the sums.
        weights: The weights.
        y: The maps.
        degree: The highest order.
        grid: The torus.

    Returns:
        The gradients by the weights and by the maps.
    """
    g_y = y.new_empty(y.shape)
    orders = weights.reshape(degree + 1, -1, weights.shape[1])
    g_weights = y.new_zeros(degree + 1, orders[0].numel())
    for part in _parts(y):
        y_hat, g_hat = to_spectrum(y[part], grid), to_spectrum(g[part], grid)
        g_y_hat = torch.empty_like(y_hat)
        for t, frequencies in _groups(grid, orders):
            y_group, g_group = _by_group(y_hat, frequencies, t), _by_group(g_hat, frequencies, t)
            _multiply(g_group, _spectral_weights(t, orders), _by_group(g_y_hat, frequencies, t))
            g_weights.addmm_(t.t(), torch.bmm(g_group.transpose(1, 2), y_group).flatten(1))
        from_spectrum(g_y_hat, grid, g_y[part])
    return g_weights.view(weights.shape), g_y


def to_spectrum(y: Float[Tensor, "batch maps nodes"], grid: GridSpec) -> Float[Tensor, "nodes batch maps"]:
    """Return the Fourier coefficients of maps.

    Args:
        y: Maps on the CPU, together at least :data:`PIECE_BYTES` at each node.
        grid: A torus whose maps have at least 64 bytes.

    Returns:
        The coefficients, in the order of :func:`torus_frequencies`.
    """
    from tigranet.ops.cpu import torus_spectrum as kernels

    y_hat = y.new_empty(grid.num_nodes, *y.shape[:2])
    signals, out, order = as_array(y).reshape(-1), y_hat.numpy().reshape(-1), torus_frequencies(grid).order
    rows, columns = axis(grid.height, y.dtype), axis(grid.width, y.dtype)
    matrices = rows.blocks, rows.sizes, columns.blocks, columns.sizes
    share(
        lambda first, last: kernels.to_spectrum(signals, *grid[:2], *matrices, order, first, last, out),
        _pieces(y),
        y.numel() * (grid.height + grid.width) // 8,
    )
    return y_hat


def from_spectrum(
    z_hat: Float[Tensor, "nodes batch maps"], grid: GridSpec, z: Float[Tensor, "batch maps nodes"]
) -> None:
    """Compute maps from their Fourier coefficients: the inverse of :func:`to_spectrum`.

    Args:
        z_hat: The coefficients, contiguous.
        grid: The torus.
        z: Where the maps are stored, contiguous.
    """
    from tigranet.ops.cpu import torus_spectrum as kernels

    spectrum, out, order = z_hat.numpy().reshape(-1), z.numpy().reshape(-1), torus_frequencies(grid).order
    rows, columns = axis(grid.height, z.dtype), axis(grid.width, z.dtype)
    matrices = rows.transposed, rows.sizes, columns.transposed, columns.sizes
    share(
        lambda first, last: kernels.from_spectrum(spectrum, *grid[:2], *matrices, order, first, last, out),
        _pieces(z),
        z.numel() * (grid.height + grid.width) // 8,
    )


def _pieces(y: Tensor) -> int:
    """Return how many pieces the signals have. The last one may repeat some signals."""
    return -(-y.shape[0] * y.shape[1] * y.itemsize // PIECE_BYTES)


def _number_of_parts(y: Tensor) -> int:
    """Return in how many parts the images are transformed and mixed."""
    most = max(MIN_IMAGES, MAX_SPECTRUM_BYTES // max(1, y.shape[1] * y.shape[2] * y.itemsize))
    return -(-y.shape[0] // most)


def _parts(y: Tensor) -> Iterator[slice]:
    """Yield the images in parts of about the same number."""
    count = _number_of_parts(y)
    for i in range(count):
        yield slice(len(y) * i // count, len(y) * (i + 1) // count)


def _groups(grid: GridSpec, orders: Tensor) -> Iterator[tuple[Tensor, slice]]:
    """Yield some groups of one size at a time: the values of their Chebyshev polynomials, and their frequencies."""
    most = max(1, MAX_WEIGHT_BYTES // orders[0].nbytes)
    values = chebyshev_values(grid, len(orders) - 1, orders.dtype)
    group = frequency = 0
    for count, size in torus_frequencies(grid).groups:
        for first in range(0, count, most):
            t = values[group + first : group + min(first + most, count)]
            start = frequency + first * size
            yield t, slice(start, start + len(t) * size)
        group, frequency = group + count, frequency + count * size


def _spectral_weights(
    t: Float[Tensor, "groups orders"], orders: Float[Tensor, "orders inner columns"]
) -> Float[Tensor, "groups inner columns"]:
    """Return W of some groups."""
    return torch.mm(t, orders.flatten(1)).view(len(t), *orders.shape[1:])


def _by_group(
    coefficients: Float[Tensor, "nodes batch maps"], frequencies: slice, t: Float[Tensor, "groups orders"]
) -> Float[Tensor, "groups columns maps"]:
    """Return the coefficients of some groups as one matrix per group."""
    return coefficients[frequencies].view(len(t), -1, coefficients.shape[2])


def _multiply(
    x: Float[Tensor, "groups size inner"],
    matrices: Float[Tensor, "groups inner columns"],
    out: Float[Tensor, "groups size columns"],
) -> None:
    """Store the products of all groups in ``out``."""
    from tigranet.ops.cpu import group_products as kernels

    groups, size, inner = x.shape
    arrays = x.numpy().reshape(-1), matrices.numpy().reshape(-1), size, inner, matrices.shape[2]
    result = out.numpy().reshape(-1)
    share(
        lambda first, last: kernels.multiply_groups(*arrays, first, last, result),
        groups,
        out.numel() * inner // 16,
    )
