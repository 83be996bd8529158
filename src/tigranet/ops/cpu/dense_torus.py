"""The stencil on maps of a torus without a border beside the rows.

The flat layout of :mod:`tigranet.ops.cpu.stencil` has two more entries per row than a map, so every map is copied row
by row into it and out of it, and short copies take longer than the arithmetic. Here a map stays as it is, and one long
loop computes all nodes. It reads a wrong neighbour at both ends of each row. Those two columns are computed again
afterwards. Each value is computed in the same order as there: the bits are the same.

``p`` is s times a map, with one entry and the last row before it, and the first row and one entry after it.
"""

from typing import no_type_check

from tigranet.ops.cpu.compile import compile_exact
from tigranet.ops.cpu.stencil import copy


@compile_exact
@no_type_check
def scale_into(p, z, s, layout):
    """Compute p = s * z, with the rows across."""
    width, nodes = layout[1], len(z)
    inner = p[width + 1 : width + 1 + nodes]
    for i in range(nodes):
        inner[i] = s * z[i]
    wrap_rows(p, layout)


@compile_exact
@no_type_check
def wrap_rows(p, layout):
    """Fill the row before the map with its last row, and the row after it with its first."""
    width, nodes = layout[1], layout[0] * layout[1]
    copy(p[1 : 1 + width], p[1 + nodes : 1 + nodes + width])
    copy(p[1 + width + nodes : 1 + nodes + 2 * width], p[1 + width : 1 + 2 * width])


@compile_exact
@no_type_check
def recur_on_torus(p, s, after, u, factor, layout, diagonal, new, p_new):
    """Compute new = factor * shifted - (after - u), and p_new = s * new with the rows across.

    All of ``after``, ``u`` and ``new`` are maps. ``u`` and ``new`` may not be the same.
    """
    height, width, eight = layout[0], layout[1], layout[3] == 8
    nodes = height * width
    rows = p[: nodes + 2], p[width : width + nodes + 2], p[2 * width : 2 * width + nodes + 2]
    _all_nodes(*rows, s, after, u, factor, eight, diagonal, new, p_new[width + 1 : width + 1 + nodes])
    _ends_of_rows(p[1:], s, after, u, factor, eight, diagonal, width, new, p_new[width + 1 :])
    wrap_rows(p_new, layout)


@compile_exact
@no_type_check
def _ends_of_rows(p, s, after, u, factor, eight, diagonal, width, new, p_new):
    """Compute the first and the last column. Here, ``p`` starts at the row before the map and ``p_new`` at the map."""
    last = width - 1
    second_last, last_column, first_column, second = p[last - 1 :: width], p[last::width], p[::width], p[1::width]
    after_first, after_last, u_first, u_last = after[::width], after[last::width], u[::width], u[last::width]
    new_first, new_last, p_first, p_last = new[::width], new[last::width], p_new[::width], p_new[last::width]
    minus_s, a, b, c, d = -s, second_last[0], last_column[0], first_column[0], second[0]  # of the row above
    e, f, g, h = second_last[1], last_column[1], first_column[1], second[1]  # of the row itself
    for r in range(len(new_first)):
        i, j, k, m = second_last[r + 2], last_column[r + 2], first_column[r + 2], second[r + 2]  # of the row below
        at_last, at_first = (b + j) + (e + g), (c + k) + (f + h)
        if eight:
            at_last += diagonal * ((a + k) + (c + i))
            at_first += diagonal * ((b + m) + (d + j))
        at_last = factor * (minus_s * at_last) - (after_last[r] - u_last[r])
        at_first = factor * (minus_s * at_first) - (after_first[r] - u_first[r])
        new_last[r], p_last[r] = at_last, s * at_last
        new_first[r], p_first[r] = at_first, s * at_first
        a, b, c, d, e, f, g, h = e, f, g, h, i, j, k, m


@compile_exact
@no_type_check
def _all_nodes(above, here, below, s, after, u, factor, eight, diagonal, new, p_new):
    """Run one step over all nodes as if the rows were one line."""
    minus_s = -s
    for i in range(len(new)):
        total = (above[i + 1] + below[i + 1]) + (here[i] + here[i + 2])
        if eight:
            total += diagonal * ((above[i] + below[i + 2]) + (above[i + 2] + below[i]))
        value = factor * (minus_s * total) - (after[i] - u[i])
        new[i] = value
        p_new[i] = s * value
