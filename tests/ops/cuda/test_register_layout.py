import pytest

from emulated import H200
from tigranet.ops.cuda.limits import DeviceLimits
from tigranet.ops.cuda.register_layout import register_layout

LIMITS = [H200, DeviceLimits(48 * 1024, 512, 32 * 1024), DeviceLimits(48 * 1024, 1024, 32 * 1024)]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("size", [(1, 7), (26, 26), (28, 28), (50, 50), (64, 31), (33, 64), (200, 20)])
def test_a_map_fits_its_warps(size, backward, limits):
    layout = register_layout(*size, 4, backward, limits)
    if layout is None:
        assert limits is not H200
        return
    lanes_per_row, bands = -(-size[1] // layout.columns), layout.bands * layout.warps
    assert lanes_per_row * layout.bands <= 32
    assert layout.rows * bands >= size[0] > layout.rows * (bands - 1)
    assert layout.warps == 1 or layout.maps == 1
    threads = 32 * layout.warps * layout.maps
    assert threads <= limits.threads_per_block
    assert threads * layout.blocks * layout.registers <= limits.registers_per_block


def test_half_the_registers_still_hold_small_maps():
    assert register_layout(28, 28, 4, False, LIMITS[1]) is not None
    assert register_layout(28, 28, 4, True, LIMITS[1]) is not None


def test_there_is_no_layout_for_large_maps():
    assert register_layout(512, 512, 4, True, H200) is None
    assert register_layout(3, 9000, 4, False, H200) is None
