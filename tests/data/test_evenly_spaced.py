from itertools import pairwise

import pytest

from tigranet.data.evenly_spaced import evenly_spaced


@pytest.mark.parametrize("count", [0, 1, 5, 64, 65, 1_000])
@pytest.mark.parametrize("limit", [1, 64])
def test_the_positions_are_different_and_spread_over_all(count, limit):
    positions = evenly_spaced(count, limit)
    assert positions == sorted(set(positions))
    assert len(positions) == min(count, limit)
    assert all(0 <= position < count for position in positions)
    distances = {end - start for start, end in pairwise([*positions, count])}
    assert not distances or max(distances) - min(distances) <= 1
