import pytest
from markupsafe import Markup

from tigranet.figures.report_text import MAX_PAGE_NAME_LENGTH, breakable, page_name, printable


@pytest.mark.parametrize(
    ("name", "html"),
    [
        ("copepod_calanoid-eggs", "copepod_<wbr>calanoid-<wbr>eggs"),
        ("ClassName", "Class<wbr>Name"),
        ("<b>_x", "&lt;b&gt;_<wbr>x"),
        ("bolt", "bolt"),
        ("_", "_"),
        ("20.png", "20.png"),
    ],
)
def test_lines_end_between_words(name, html):
    assert breakable(name) == Markup(html)


@pytest.mark.parametrize("name", ["x" * 10_000, "a\nb\x1b[31m\x00", "\u202egnp", "caf\udce9", "\ud800"])
def test_any_name_is_short_and_can_be_encoded(name):
    shown = page_name(name)
    assert len(shown) <= MAX_PAGE_NAME_LENGTH
    assert not set(shown.encode().decode()) & set("\x00\x1b\u202e\n")
    assert printable(shown) == shown


def test_markup_and_numbers_are_not_changed():
    assert printable(3) == 3
    assert printable(Markup("\n<b>")) == "\n<b>"
