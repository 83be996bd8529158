"""Rules that all networks in the notation share. The rules of each kind of network are tested with it."""

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tigranet.notation import FC, Layer, Notation


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
