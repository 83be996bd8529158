import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.data.class_names import MAX_LISTED_NAMES, check_class_names, list_names, names_that_differ_by_case

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["cat", "dog", "cat"], ["'cat' and 'cat'"]),
        (["cat", "cat "], ["'cat'", "'cat '"]),
        (["\tcat", "dog", "cat\n"], [r"'\tcat'", r"'cat\n'"]),
        (["", " "], ["'' and ' '"]),
        ([COMPOSED, DECOMPOSED], [r"caf\xe9", r"cafe\u0301"]),
        ([COMPOSED, DECOMPOSED + " "], ["caf"]),
    ],
)
def test_names_that_look_the_same_are_refused_and_both_are_shown(names, values):
    with pytest.raises(ValueError, match="photos") as error:
        check_class_names(names, Path("photos"))
    assert len(str(error.value).splitlines()) == 1
    for value in values:
        assert value in str(error.value)


@pytest.mark.parametrize("names", [["a", "A"], ["cat dog", "catdog"], ["1", "l"], ["e", "\u00e9"], []])
def test_names_that_can_be_told_apart_are_accepted(names):
    check_class_names(names, Path("photos"))


@given(st.lists(st.text(max_size=3), max_size=6), st.sampled_from(["NFC", "NFD"]))
def test_a_second_spelling_of_any_name_is_refused(names, form):
    distinct = {unicodedata.normalize("NFC", name).strip() for name in names}
    if len(distinct) == len(names):
        check_class_names(names, Path("photos"))
    for name in names:
        with pytest.raises(ValueError, match="same name"):
            check_class_names([*names, f" {unicodedata.normalize(form, name)}\t"], Path("photos"))


def test_names_that_differ_by_case_are_found():
    assert names_that_differ_by_case(["A", "b", "a", "B", "c", "STRASSE", "stra\u00dfe"]) == [
        ("A", "a"), ("b", "B"), ("STRASSE", "stra\u00dfe"),
    ]  # fmt: skip
    assert names_that_differ_by_case(["a", "b"]) == []


def test_a_list_of_names_is_short_and_has_no_control_characters():
    text = list_names([f"\x1b[31m{number}\udcff" for number in range(MAX_LISTED_NAMES + 2)])
    assert text.isprintable()
    assert text.endswith("and 2 more")
    assert "and" not in list_names([str(number) for number in range(MAX_LISTED_NAMES)])
    assert list_names(["日本", "b"]) == "'日本', 'b'"
