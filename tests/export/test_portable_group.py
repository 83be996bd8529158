import pytest

from export.conftest import assert_same_function
from tigranet.export.portable_group import PortableGroupBlock, PortableGroupConv, PortableOrientationMax
from tigranet.layers import GroupBlock, GroupConv, LiftingConv, OrientationMax


@pytest.mark.parametrize("boundary", ["free", "torus"])
@pytest.mark.parametrize(
    ("build", "portable"),
    [
        (lambda: LiftingConv(8, 3, 4, 5), PortableGroupConv),
        (lambda: GroupConv(8, 3, 4, 3), PortableGroupConv),
        (lambda: GroupBlock(8, 4, 3), PortableGroupBlock),
        (lambda: OrientationMax(8, 5, 4), PortableOrientationMax),
    ],
    ids=["LC", "GC", "GB", "MO"],
)
def test_a_layer(build, portable, boundary):
    assert_same_function(build(), portable, boundary)
