"""Images with a border of added pixels, stored pixel by pixel: rows of width * maps numbers."""

from typing import no_type_check

from tigranet.ops.cpu.compile import compile_exact
from tigranet.ops.cpu.stencil import copy


@compile_exact
@no_type_check
def source_position(position, size, border, wraps):
    """Return the position inside an axis of ``size`` pixels that a position of the padded axis is a copy of."""
    inside = position - border
    if wraps:
        return inside % size
    return min(max(inside, 0), size - 1)


@compile_exact
@no_type_check
def add_columns(row, width, maps, border, wraps):
    """Fill the added pixels at both ends of a padded row."""
    for side in range(2):
        start = side * (border + width)
        for position in range(start, start + border):
            source = border + source_position(position, width, border, wraps)
            copy(row[position * maps : (position + 1) * maps], row[source * maps : (source + 1) * maps])


@compile_exact
@no_type_check
def _add(total, term):
    for i in range(len(total)):
        total[i] += term[i]


@compile_exact
@no_type_check
def _fold_columns(row, width, maps, border, wraps, out):
    """Add to ``out`` the gradients of the added pixels of a padded row, at the pixels that these are copies of."""
    for side in range(2):
        start = side * (border + width)
        for position in range(start, start + border):
            source = source_position(position, width, border, wraps)
            _add(out[source * maps : (source + 1) * maps], row[position * maps : (position + 1) * maps])


@compile_exact
@no_type_check
def fold_row(padded, row, height, width, maps, border, wrap_rows, wrap_columns, out):
    """Add up the gradients of a row and of all its copies: the adjoint of adding a border.

    ``padded`` is (padded height, padded width * maps), the gradient by one padded image. ``out`` has width * maps
    numbers.
    """
    lo, hi = border * maps, (border + width) * maps
    copy(out, padded[border + row, lo:hi])
    _fold_columns(padded[border + row], width, maps, border, wrap_columns, out)
    for side in range(2):
        start = side * (border + height)
        for position in range(start, start + border):
            if source_position(position, height, border, wrap_rows) == row:
                _add(out, padded[position, lo:hi])
                _fold_columns(padded[position], width, maps, border, wrap_columns, out)
