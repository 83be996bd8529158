import pytest

from tigranet.data.image_errors import one_line
from tigranet.quoted_text import MAX_QUOTED_CHARACTERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("\n\n first \nsecond", "first"),
        ("a\tb\x1b[31m", "a\\tb\\x1b[31m"),
        ("\udcff.png", "\\udcff.png"),
        ("ä 猫", "ä 猫"),
    ],
)
def test_a_reason_is_one_printable_line(text, expected):
    assert one_line(text) == expected
    one_line(text).encode()  # no lone surrogates


def test_a_long_reason_is_shortened():
    assert len(one_line("x" * 5000)) < 1.1 * MAX_QUOTED_CHARACTERS
