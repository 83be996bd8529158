"""Borders of images that are stored pixel by pixel: the positions, and folding as the adjoint of padding."""

import numpy as np
import pytest
import torch

from tigranet.graphs.padding import pad_images
from tigranet.ops.cpu import borders
from tigranet.ops.cpu.compile import kernel

add_columns, fold_row, source_position = (
    kernel(function.py_func)  # callable from Python
    for function in (borders.add_columns, borders.fold_row, borders.source_position)
)


@pytest.mark.parametrize("border", [0, 1, 2, 7])
def test_every_position_is_a_copy_of_the_one_that_padding_copies(border):
    for size in (1, 2, 5):
        for wraps in (False, True):
            expected = pad_images(torch.arange(size).float().reshape(1, size), border, wraps, wraps)[0].tolist()
            positions = range(size + 2 * border)
            assert [source_position(position, size, border, wraps) for position in positions] == expected


@pytest.mark.parametrize("wraps", [False, True])
def test_columns_are_added_at_both_ends(wraps):
    row = torch.rand(1, 1, 4, 3)  # (image, row, pixel, map)
    padded = torch.cat((torch.zeros(1, 1, 2, 3), row, torch.zeros(1, 1, 2, 3)), dim=2).flatten().numpy()
    add_columns(padded, 4, 3, 2, wraps)
    expected = pad_images(row.permute(0, 3, 1, 2), 2, wraps, wraps)[:, :, 2].permute(0, 2, 1)
    np.testing.assert_array_equal(padded, expected.flatten().numpy())


@pytest.mark.parametrize(("wrap_rows", "wrap_columns"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(("height", "width", "border"), [(5, 4, 1), (2, 3, 2), (1, 2, 3)])
def test_folding_is_the_adjoint_of_padding(height, width, border, wrap_rows, wrap_columns):
    images = torch.rand(1, 3, height, width, dtype=torch.float64, requires_grad=True)
    padded = pad_images(images, border, wrap_rows, wrap_columns)
    g = torch.rand_like(padded)
    (expected,) = torch.autograd.grad(padded, images, g)
    rows = g[0].permute(1, 2, 0).reshape(height + 2 * border, -1).numpy()
    for row in range(height):
        out = np.empty(width * 3)
        fold_row(rows, row, height, width, 3, border, wrap_rows, wrap_columns, out)
        np.testing.assert_allclose(out, expected[0, :, row].T.flatten().numpy())
