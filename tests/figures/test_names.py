import pytest

from tigranet.figures.names import MAX_NAME_LENGTH, shorten


@pytest.mark.parametrize(
    "name", ["a" * 100, "\x1b" * 10_000, "日" * 23, "\udcff" * 22], ids=["letters", "controls", "wide", "bytes"]
)
def test_long_names_are_shortened(name):
    assert len(shorten(name)) == MAX_NAME_LENGTH
    assert shorten(name).endswith("…")


@pytest.mark.parametrize(
    ("name", "shown"), [("", ""), ("bolt", "bolt"), ("$x^{$", "$x^{$"), ("a\nb", r"a\nb"), ("caf\udce9", r"caf\xe9")]
)
def test_short_names_stay_on_one_line(name, shown):
    assert shorten(name) == shown


def test_the_length_may_be_chosen():
    assert shorten("hexagonal", 5) == "hexa…"
