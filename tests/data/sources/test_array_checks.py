from pathlib import Path

import numpy as np
import pytest

from tigranet.data.npz_file import ArrayHeader
from tigranet.data.sources.array_checks import check_images, count_labels

FILE = Path("fish.npz")


def test_images_or_their_header_must_be_bytes_of_the_shape():
    check_images("fish", FILE, np.zeros((2, 3, 3), np.uint8), (2, 3, 3))
    check_images("fish", FILE, ArrayHeader((2, 3, 3), np.dtype("u1")), (2, 3, 3))
    with pytest.raises(ValueError, match=r"fish as uint8 of shape \(2, 3, 3\), got int8 of shape \(2, 3, 3\) in 'fish"):
        check_images("fish", FILE, np.zeros((2, 3, 3), np.int8), (2, 3, 3))
    with pytest.raises(ValueError, match=r"got uint8 of shape \(1, 3, 3\)"):
        check_images("fish", FILE, ArrayHeader((1, 3, 3), np.dtype("u1")), (2, 3, 3))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64])
def test_labels_of_any_integer_type_are_counted(dtype):
    assert count_labels("fish", FILE, np.array([3, 0, 3], dtype), 5) == [1, 0, 0, 2, 0]


@pytest.mark.parametrize(
    ("labels", "received"),
    [
        (np.array([0, 5]), "0 to 5 in 'fish"),
        (np.array([-1, 2]), "-1 to 2"),
        (np.array([0, 2**64 - 1], np.uint64), "18446744073709551615"),
        (np.array([0.0, 1.0]), "float64"),
        (np.array([True]), "bool"),
        (np.array(["a"]), "<U1"),
        (np.zeros((2, 2), int), r"\(2, 2\)"),
        (np.zeros(0, int), r"\(0,\)"),
    ],
)
def test_other_labels_are_refused(labels, received):
    with pytest.raises(ValueError, match=rf"labels of fish from 0 to 4.*{received}"):
        count_labels("fish", FILE, labels, 5)
