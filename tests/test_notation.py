"""Rules that all networks in the notation share. The rules of each kind of network are tested with it."""

import re
import time
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet.notation import FC, MAX_LAYERS, Layer, Notation


@dataclass(frozen=True)
class Q(Layer):
    size: int
    angle: int
    may_be_zero = ("angle",)


@dataclass(frozen=True)
class Quilt(Notation):
    FIRST = (Q,)
    FOLLOW: ClassVar = {Q: (Q, FC), FC: (FC,)}
    NEEDED = Q
    ORDER = "a quilt has Q layers, then FC layers"
    PRESETS: ClassVar = {"bed": "Q[4,0]-FC[2]"}


@dataclass(frozen=True)
class Patch(Quilt):
    FOLLOW: ClassVar = {Q: ()}


def test_a_new_kind_of_network_is_parsed_and_prints_back():
    quilt = Quilt.parse(" Q[3, 0]-Q [12,90]-FC[5]")
    assert type(quilt) is Quilt
    assert quilt.layers == (Q(3, 0), Q(12, 90), FC(5))
    assert str(quilt) == "Q[3,0]-Q[12,90]-FC[5]"
    assert str(Quilt.parse("bed")) == "Q[4,0]-FC[2]"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Q[0,1]", ["size of Q", "at least 1", "got 0", "layer 1 ('Q[0,1]') of 'Q[0,1]'"]),
        ("Q[1,1]-R[1]", ["'R'", "layer 2 ('R[1]') of 'Q[1,1]-R[1]'", "Q, FC"]),
        ("FC[1]", ["expected Q", "got FC", "layer 1 ('FC[1]') of 'FC[1]'", Quilt.ORDER]),
        ("Q[1]", ["Q", "2 numbers (size, angle)", "got 1", "layer 1 ('Q[1]') of 'Q[1]'", "Q[size,angle]"]),
        ("Q[1,x]", ["whole number for angle", "got 'x'", "layer 1 ('Q[1,x]') of 'Q[1,x]'", "Q[size,angle]"]),
        ("Q1,2]-Q[1,1]", ["NAME[number,...]", "layer 1 ('Q1,2]') of 'Q1,2]-Q[1,1]'", "brackets"]),
        ("bad", ["'Q[4,0]-FC[2]'", "got 'bad'", "did you mean 'bed'?"]),
        ("carpet", ["'Q[4,0]-FC[2]'", "got 'carpet'", "presets: bed"]),
    ],
)
def test_errors_name_the_layer_the_text_and_the_remedy(text, values):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        Quilt.parse(text)


def test_an_error_names_a_layer_after_the_end():
    with pytest.raises(ValueError, match=re.escape("no further layer, got Q in layer 2 ('Q[2,2]') of 'Q[1,1]-Q[2,2]'")):
        Patch((Q(1, 1), Q(2, 2)))


def test_a_network_needs_layers():
    with pytest.raises(ValueError, match=f"expected Q .*''.*{Quilt.ORDER}"):
        Quilt(())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-".join(["Q[1,1]"] * 1001), ["1,000 layers", "1,001"]),
        ("-".join(["Q[1,1]"] * 100_000), ["100,000 characters", "699,999"]),
        ("x" * 10_000_000, ["100,000 characters", "10,000,000"]),
        ("x" * 90_000, ["presets: bed"]),
        ("Q[1,1]" + "-" * 900 + "Q", ["layer 2", "NAME"]),
        ("Q[" + "1," * 40_000 + "1]", ["2 numbers", "40001", "layer 1"]),
        ("Q[" + " " * 90_000 + "1,1", ["NAME", "layer 1"]),
        ("[" * 90_000, ["NAME", "layer 1"]),
        (f"Q[1,{'9' * 50_000}]", ["angle of Q", "1,000,000,000", "999...999", "layer 1"]),
        ("Q[1000000001,1]", ["size of Q", "at most 1,000,000,000", "1,000,000,001", "layer 1"]),
        ("Q[1,1]-FC[1000001]", ["units of FC", "at most 1,000,000", "layer 2"]),
        ("Q[1,1]-\x1b[31m\n", ["NAME", "\\x1b[31m\\n"]),
    ],
    ids=range(12),
)
def test_long_text_is_refused_quickly_in_one_short_line(text, values):
    before = time.process_time()
    with pytest.raises(ValueError, match=re.escape(values[0])) as error:
        Quilt.parse(text)
    assert time.process_time() - before < 0.5
    assert all(value in str(error.value) for value in values), str(error.value)
    assert len(str(error.value)) < 1000
    assert "\n" not in str(error.value)


def test_a_network_of_many_layers_is_parsed_quickly_and_no_longer_one_is_made():
    before = time.process_time()
    quilt = Quilt.parse("-".join(["Q[1,1]"] * MAX_LAYERS))
    assert len(quilt.layers) == MAX_LAYERS
    assert time.process_time() - before < 1
    with pytest.raises(ValueError, match="1,001"):
        Quilt((Q(1, 1),) * (MAX_LAYERS + 1))


def test_leading_zeros_do_not_count():
    assert Quilt.parse(f"Q[{'0' * 5000}12,0]").layers == (Q(12, 0),)


@pytest.mark.parametrize("value", [2.0, "2", None, True, float("nan")])
def test_numbers_of_a_layer_are_integers(value, without_shape_checks):
    with pytest.raises(TypeError, match=rf"size of Q.*{value}"):
        Q(value, 0)


@given(st.text(max_size=30) | st.text("QFC[],-0123456789 ", max_size=30))
def test_any_text_is_parsed_or_refused_in_one_line(text):
    try:
        message = str(Quilt.parse(text))
    except ValueError as error:
        message = str(error)
    assert len(message.splitlines()) == 1
