"""What all networks of the notation share; what each says is tested with it."""

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
    ORDER = "a quilt is Q layers, then FC layers"
    PRESETS: ClassVar = {"bed": "Q[4,0]-FC[2]"}


def test_a_new_kind_of_network_is_read_and_prints_back():
    quilt = Quilt.parse(" Q[3, 0]-Q [12,90]-FC[5]")
    assert type(quilt) is Quilt
    assert quilt.layers == (Q(3, 0), Q(12, 90), FC(5))
    assert str(quilt) == "Q[3,0]-Q[12,90]-FC[5]"
    assert str(Quilt.parse("bed")) == "Q[4,0]-FC[2]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Q[0,1]", "Q has size of at least 1, got 0 in layer 1 ('Q[0,1]') of 'Q[0,1]'"),
        ("Q[1,1]-R[1]", "no layer is called 'R' in layer 2 ('R[1]') of 'Q[1,1]-R[1]': there are Q, FC"),
        ("FC[1]", "wanted Q in layer 1 ('FC[1]') of 'FC[1]': a quilt is Q layers, then FC layers"),
        ("bad", "'bad' is neither a preset nor layers such as 'Q[4,0]-FC[2]': did you mean 'bed'?"),
    ],
)
def test_its_errors_are_its_own(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Quilt.parse(text)


def test_no_layers_are_no_network():
    with pytest.raises(ValueError, match="wanted Q after the last layer of '': a quilt is"):
        Quilt(())
