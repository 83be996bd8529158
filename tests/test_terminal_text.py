import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.terminal_text import escape_control_characters, replace_unencodable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x00\x07\x08\x7f", r"\x00\x07\x08\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),  # C1: a command sequence in one character, and a line break
        ("invoice\u202egnp.exe", r"invoice\u202egnp.exe"),
        ("\u2066\u2069\u200e\u061c", r"\u2066\u2069\u200e\u061c"),
        ("\u2028\u2029\ufeff\u200b", r"\u2028\u2029\ufeff\u200b"),
        ("caf\udce9", r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, expected):
    assert escape_control_characters(text) == expected


@pytest.mark.parametrize(
    "text", ["", "bolt", "Ελλάδα", "日本語", "नि\u200dक", "👩\u200d🔬", "a  b", r"C:\new", "[red]"]
)
def test_ordinary_text_of_any_script_is_left_alone(text):
    assert escape_control_characters(text) == text


@given(st.text(st.characters()))
def test_the_result_is_one_printable_line_and_stays_as_it_is(text):
    escaped = escape_control_characters(text)
    assert len(f"{escaped}.".splitlines()) == 1
    assert not {unicodedata.category(character) for character in escaped} & {"Cc", "Cs", "Zl", "Zp"}
    assert escape_control_characters(escaped) == escaped
    escaped.encode("utf-8")


@given(st.text(st.characters()), st.sampled_from(["ascii", "latin-1", "utf-8", "cp437"]))
def test_the_result_can_be_encoded(text, encoding):
    replaced = replace_unencodable(text, encoding)
    replaced.encode(encoding)
    if text.isascii():
        assert replaced == text


def test_symbols_are_spelled_out_where_the_encoding_lacks_them():
    assert replace_unencodable("94 ± 0.4 …", "ascii") == "94 +- 0.4 ..."
    assert replace_unencodable("94 ± 0.4", "latin-1") == "94 ± 0.4"
