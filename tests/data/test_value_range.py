import numpy as np
import pytest

from tigranet.data.value_range import full_scale


@pytest.mark.parametrize(("kind", "wanted"), [("uint8", 255), ("int8", 127), ("uint16", 65535), ("int16", 32767)])
def test_narrow_numbers_are_divided_by_the_largest_of_their_type_whatever_they_are(kind, wanted):
    assert full_scale(np.dtype(kind), -3, 9) == wanted


@pytest.mark.parametrize(("largest", "wanted"), [(0, 1), (1, 1), (2, 255), (255, 255), (256, 65535), (65535, 65535)])
def test_wide_numbers_are_divided_by_the_first_that_none_exceeds(largest, wanted):
    assert full_scale(np.dtype("int64"), 0, largest) == wanted


@pytest.mark.parametrize(("lowest", "largest"), [(0, 65536), (-1, 200)])
def test_wide_numbers_beyond_sixteen_bits_or_below_zero_are_refused(lowest, largest):
    with pytest.raises(ValueError, match=rf"of 32 bits from {lowest} to {largest}, read are 0 to 65535: divide them"):
        full_scale(np.dtype("int32"), lowest, largest)
