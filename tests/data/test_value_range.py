import numpy as np
import pytest

from tigranet.data.value_range import full_scale


@pytest.mark.parametrize(("kind", "expected"), [("uint8", 255), ("int8", 127), ("uint16", 65535), ("int16", 32767)])
def test_narrow_integers_are_divided_by_the_largest_value_of_their_type(kind, expected):
    assert full_scale(np.dtype(kind), -3, 9) == expected


@pytest.mark.parametrize(("largest", "expected"), [(0, 1), (1, 1), (2, 255), (255, 255), (256, 65535), (65535, 65535)])
def test_wide_integers_are_divided_by_the_first_limit_that_no_pixel_exceeds(largest, expected):
    assert full_scale(np.dtype("int64"), 0, largest) == expected


@pytest.mark.parametrize(("lowest", "largest"), [(0, 65536), (-1, 200)])
def test_wide_integers_that_are_negative_or_exceed_16_bits_are_refused(lowest, largest):
    with pytest.raises(ValueError, match=rf"32 bits from {lowest} to {largest}.*65535.*uint16"):
        full_scale(np.dtype("int32"), lowest, largest)
