import pytest

from tigranet.figures.names import MAX_NAME_LENGTH, longest_word, shorten, wrap


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("acantharia_protist_big_center", "acantharia…center"),
        ("hexagonal bolt with flange", "hexagonal bolt…flange"),
        ("appendicularian_fritillaridae", "appendicularian_friti…"),  # two words that do not fit
    ],
)
def test_a_long_name_keeps_its_first_words_and_its_last_one(name, shown):
    assert shorten(name) == shown
    assert len(shown) <= MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("", [""]),
        ("7", ["7"]),
        ("copepod_calanoid_eggs", ["copepod", "_calanoid", "_eggs"]),
        ("two words", ["two words"]),
        ("a name of many words indeed", ["a name of", "many words", "indeed"]),
        ("x" * 100, ["x" * 10, "x" * 10, "x" * 9 + "…"]),
        ("a\nb", [r"a\nb"]),
    ],
)
def test_a_name_is_wrapped_between_words(name, lines):
    assert wrap(name, 10, 3) == lines


def test_lines_of_the_longest_word_cut_no_word():
    name = "hydromedusae_narco_young"
    assert wrap(name, longest_word(name), 3) == ["hydromedusae", "_narco_young"]
