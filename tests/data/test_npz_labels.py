from pathlib import Path

import numpy as np
import pytest

from tigranet.data.npz_labels import as_labels, as_texts, names_of_classes

FILE = Path("a.npz")


def test_bytes_are_text_and_whole_numbers_are_integers():
    assert as_texts(np.array(["ä".encode(), b"b"]), "labels").tolist() == ["ä", "b"]
    assert as_texts(np.array([[1.0], [2.0]]), "labels").tolist() == [1, 2]
    assert as_texts(np.array([0.5, 2.0]), "labels").tolist() == [0.5, 2.0]
    assert as_texts(np.array([True, False]), "labels").dtype == bool


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([0, np.nan, 1]), "nan at position 1"),
        (np.array([0, np.inf]), "inf at position 1"),
        (np.array([1j, 2]), "complex128"),
        (np.array([(1, 2)], dtype="i4,i4"), r"'i4'|int32|<i4"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "datetime64"),
        (np.array([b"\xff\xfe"]), "UTF-8"),
    ],
)
def test_labels_that_are_not_classes_are_refused_with_the_value(values, message):
    with pytest.raises(ValueError, match=message) as error:
        as_labels([values], FILE)
    assert "a.npz" in str(error.value)


def test_parts_must_have_labels_of_one_kind():
    with pytest.raises(ValueError, match=r"a\.npz.*text.*numbers"):
        as_labels([np.array(["0", "1"]), np.array([0, 1])], FILE)
    assert as_labels([np.array([0, 1]), np.array([1.0])], FILE).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "names", [["cat", "dog", "cat"], ["cat", "dog", " cat "], [b"cat", b"dog", b"cat"], [1, 2, 1.0]]
)
def test_two_classes_of_the_same_name_are_refused(names):
    with pytest.raises(ValueError, match=r"a\.npz.*same name"):
        names_of_classes(np.arange(3), np.array(names), FILE)


def test_labels_that_differ_only_in_spaces_are_refused():
    with pytest.raises(ValueError, match=r"a\.npz.*'cat '"):
        names_of_classes(np.array(["cat", "cat "]), None, FILE)


def test_names_belong_to_integers_only():
    assert names_of_classes(np.array([0, 2]), np.array([b"x", b"y", b"z"]), FILE) == ("x", "z")
    assert names_of_classes(np.array([-1, 1]), None, FILE) == ("-1", "1")
    assert names_of_classes(np.array(["a", "b"]), np.array(["x", "y"]), FILE) == ("a", "b")
