import numpy as np
import pytest

from tigranet.data.value_range import OVERSHOOT, full_scale, is_standardised, outside_unit_range


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


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_outside_the_unit_range_are_described_by_their_range(kind):
    assert outside_unit_range(np.array([-3, 0.5, 200], kind)) == "-3 to 200"
    assert outside_unit_range(np.array([-OVERSHOOT, 1 + OVERSHOOT], kind)) is None
    assert outside_unit_range(np.array([], kind)) is None


def test_integers_and_booleans_have_a_range_of_their_own():
    assert outside_unit_range(np.array([0, 255], np.uint8)) is None
    assert outside_unit_range(np.array([True, False])) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-2.1, 0.0, 2.6], True),
        ([-1.0, 1.0], True),
        ([0.0, 255.0], False),
        ([-1000.0, 3000.0], False),
        ([5.0, 9.0], False),
    ],
)
def test_standardised_values_have_both_signs_and_moments_near_0_and_1(values, expected):
    assert is_standardised(np.array(values, np.float32)) is expected
