import pytest

from tigranet.ops.cuda.strip_layout import strip_layout
from tigranet.ops.grid_spec import GridSpec


@pytest.mark.parametrize("max_threads", [128, 512, 1024])
@pytest.mark.parametrize("size", [(1, 2), (2, 1), (28, 28), (64, 64), (96, 96), (5, 100), (500, 3), (9, 128)])
def test_strips_cover_the_map_with_the_threads_of_a_block(size, max_threads):
    layout = strip_layout(GridSpec(*size, 8, False, 1.0), max_threads)
    columns, strips, depth = layout.block
    assert columns * strips * depth <= max_threads
    assert columns % 32 == 0
    assert columns >= size[1]
    assert 1 <= layout.rows <= size[0]
    assert layout.rows * strips >= size[0] > layout.rows * (strips - 1)


def test_strips_have_four_rows_if_there_are_enough_threads():
    assert strip_layout(GridSpec(28, 28, 8, False, 1.0), 1024) == (4, (32, 7, 1))


def test_rows_wider_than_a_block_do_not_fit():
    assert "600 pixels needs 608 threads, this device has 512" in strip_layout(GridSpec(2, 600, 8, False, 1.0), 512)
