r"""The grid's stencil, and what all kernels share: maps in a flat buffer with a border.

A map lies in a *flat* buffer (:mod:`tigranet.ops.cpu.flat_grid`) with a border of zeros (free) or of the nodes across
(torus), so that one step of a recurrence is one long loop, which vectorises at any width. ``s`` is :math:`D^{-1/2}` in
that layout and zero on the border. Values on the border are selected away by ``s > 0`` rather than multiplied by zero,
so that a NaN cannot leak through the border.

Every sum that the value of a node depends on is added in the order of the plain version, without fused multiply-adds:
the values are the same bits. Only the sums *over* nodes (mean, variance, gradients of coefficients) are reassociated
into vectors: in pieces of some thousand nodes whose totals are float64, or in float64 throughout.

Masks are bytes. Each kernel computes the items ``first`` to ``last`` of a batch, ``last`` excluded, does not hold
Python's global lock and starts no threads: :func:`tigranet.ops.cpu.thread_pool.share` calls it from several threads.

Arguments that the kernels share: ``s`` as above; ``layout``, which is (height, width, stride, neighbours, whether rows
wrap, whether columns wrap); ``diagonal``, the weight of the diagonal edges; ``masked``, whether there is a mask.
"""

from typing import no_type_check

from tigranet.ops.cpu.compile import compile_exact

PIECE = 4096
"""Number of nodes that are summed in the dtype of the signal before the total is carried on in float64."""


@compile_exact
@no_type_check
def step(above, here, below, s, before, factor, sign, eight, diagonal, new, p_new):
    """Compute new = factor * shifted + sign * before, and p_new = s * new.

    ``above``, ``here`` and ``below`` are the rows of s times the map, and start one to the left of the first node.
    """
    zero, minus = s.dtype.type(0), s.dtype.type(-1)
    if eight:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            corners = (above[i] + below[i + 2]) + (above[i + 2] + below[i])
            value = factor * (minus * s[i] * (cross + diagonal * corners)) + sign * before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value
    else:
        for i in range(len(new)):
            cross = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
            value = factor * (minus * s[i] * cross) + sign * before[i]
            value = value if s[i] > zero else zero
            new[i] = value
            p_new[i] = s[i] * value


@compile_exact
@no_type_check
def step_on_torus(above, here, below, s, before, factor, sign, eight, diagonal, new, p_new):
    """Run one :func:`step` where ``s`` is the same number at all nodes. The border is not set to zero."""
    minus_s = -s
    for i in range(len(new)):
        total = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
        if eight:
            total += diagonal * ((above[i] + below[i + 2]) + (above[i + 2] + below[i]))
        value = factor * (minus_s * total) + sign * before[i]
        new[i] = value
        p_new[i] = s * value


@compile_exact
@no_type_check
def recur(p, s, before, factor, sign, layout, diagonal, new, p_new, lo, hi):
    """Run one step over the flat entries ``lo`` to ``hi``. On the torus, the border of ``new`` has no meaning."""
    stride, eight = layout[2], layout[3] == 8
    above, here, below = p[lo - stride - 1 : hi - stride + 1], p[lo - 1 : hi + 1], p[lo + stride - 1 : hi + stride + 1]
    if layout[4] and layout[5]:
        step_on_torus(above, here, below, s[lo], before[lo:hi], factor, sign, eight, diagonal, new[lo:hi], p_new[lo:hi])
    else:
        step(above, here, below, s[lo:hi], before[lo:hi], factor, sign, eight, diagonal, new[lo:hi], p_new[lo:hi])


@compile_exact
@no_type_check
def wrap(p, layout):
    """On the torus, fill the border with the nodes across."""
    height, width, stride, _, wrap_rows, wrap_columns = layout
    if wrap_rows:
        for i in range(stride):
            p[i] = p[height * stride + i]
            p[(height + 1) * stride + i] = p[stride + i]
    if wrap_columns:
        for r in range(height + 2):
            row = p[r * stride : (r + 1) * stride]
            row[0], row[width + 1] = row[width], row[1]


@compile_exact
@no_type_check
def to_flat(flat, dense, layout):
    """Copy a map into the flat layout."""
    height, width, stride = layout[0], layout[1], layout[2]
    for r in range(height):
        row, out = dense[r * width : (r + 1) * width], flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width]
        for c in range(width):
            out[c] = row[c]


@compile_exact
@no_type_check
def from_flat(dense, flat, layout):
    """Copy a map out of the flat layout."""
    height, width, stride = layout[0], layout[1], layout[2]
    for r in range(height):
        row, out = flat[(r + 1) * stride + 1 : (r + 1) * stride + 1 + width], dense[r * width : (r + 1) * width]
        for c in range(width):
            out[c] = row[c]


@compile_exact
@no_type_check
def multiply(a, b, out):
    """Compute out = a * b, also where b is a mask: a product, not a selection, so that a NaN is not hidden."""
    for i in range(len(out)):
        out[i] = a[i] * a.dtype.type(b[i])


@compile_exact
@no_type_check
def load(z, active, masked, s, layout, product, t, p):
    """Copy a map times its mask into the flat layout as ``t``, and s times that as ``p``. Return the masked map."""
    if masked:
        multiply(z, active, product)
        z = product
    to_flat(t, z, layout)
    multiply(t, s, p)
    wrap(p, layout)
    return z


@compile_exact
@no_type_check
def copy(out, row):
    """Copy one row."""
    for i in range(len(out)):
        out[i] = row[i]
