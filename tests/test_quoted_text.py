from hypothesis import given
from hypothesis import strategies as st

from tigranet.quoted_text import MAX_QUOTED_CHARACTERS, shorten


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"]), max_size=MAX_QUOTED_CHARACTERS))
def test_short_printable_text_stays(text):
    assert shorten(text) == text


@given(st.text(max_size=600))
def test_the_result_is_one_short_line_that_can_be_printed(text):
    assert shorten(text).isprintable()
    assert len(shorten(text)) <= 10 * (MAX_QUOTED_CHARACTERS + 3)  # a character is written out as up to 10


def test_beginning_and_end_of_long_text_stay():
    text = shorten("begin" + "x" * 1_000_000 + "end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "..." in text
    assert len(shorten("x" * 50, max_characters=10)) == 13


def test_bytes_that_are_not_utf8_are_escaped():
    assert shorten("caf\udce9") == "caf\\udce9"
