import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigranet import Architecture
from tigranet.architecture import DP, FC, GP, MC, MP, OP, PRESETS, SC, S

spectral = st.tuples(st.sampled_from([SC, MC]), st.integers(1, 99), st.integers(0, 9))
products = st.tuples(st.sampled_from([OP, MP, GP]), st.integers(1, 99), st.integers(0, 3))
pooling = st.tuples(st.just(DP), st.integers(1, 9999))
connected = st.tuples(st.just(FC), st.integers(1, 999))


@given(
    spectral, st.lists(spectral | products | pooling, max_size=5), st.integers(0, 20), st.lists(connected, max_size=4)
)
def test_it_prints_back_exactly(first, graph, order, last):
    architecture = Architecture(tuple(kind(*numbers) for kind, *numbers in (first, *graph, (S, order), *last)))
    assert Architecture.parse(str(architecture)) == architecture
    assert str(Architecture.parse(str(architecture))) == str(architecture)


def test_the_papers_two_networks():
    assert Architecture.parse("paper-small").layers == (
        SC(3, 3), DP(300), SC(6, 3), DP(100), S(10), FC(50), FC(30), FC(10),
    )  # fmt: skip
    assert Architecture.parse("paper").layers == (
        SC(10, 4), DP(600), SC(20, 4), DP(300), S(12), FC(500), FC(300), FC(100),
    )  # fmt: skip
    assert all(str(Architecture.parse(name)) == text for name, text in PRESETS.items())


def test_table_1_is_read_as_it_is_printed_there():
    spaced = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"
    assert Architecture.parse(spaced) == Architecture.parse("paper-small")
    assert str(Architecture.parse(spaced)) == PRESETS["paper-small"]


def test_what_is_usual_is_left_out():
    assert str(OP(24)) == str(OP(24, 0)) == "OP[24]"
    assert str(GP(24, 2)) == "GP[24,2]"
    assert Architecture.parse("MC[3,0]-MP[2,0]-S[0]").layers == (MC(3, 0), MP(2), S(0))
    assert str(Architecture.parse("MC[3,0]-MP[2,0]-S[0]")) == "MC[3,0]-MP[2]-S[0]"
    assert OP(2) != MP(2) != GP(2)
    with pytest.raises(ValueError, match="OP has smoothings of at least 0, got -1"):
        OP(2, -1)


def test_it_is_a_value():
    a, b = Architecture.parse("paper"), Architecture.parse("paper")
    assert a == b
    assert hash(a) == hash(b)
    with pytest.raises(AttributeError):
        a.layers[0].maps = 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SC[10]-DP[3]", "SC takes 2 numbers (maps, degree), got 1 in layer 1 ('SC[10]') of 'SC[10]-DP[3]'"),
        (
            "SC[3,3]-DP[1,2]-S[1]",
            "DP takes 1 number (num_active), got 2 in layer 2 ('DP[1,2]') of 'SC[3,3]-DP[1,2]-S[1]'",
        ),
        ("SC[3,3]-S[]", "S takes 1 number (order), got 0 in layer 2 ('S[]') of 'SC[3,3]-S[]'"),
        ("SC[3,x]-S[1]", "SC takes a whole number for degree, got 'x' in layer 1 ('SC[3,x]') of 'SC[3,x]-S[1]'"),
        ("SC[3,1.5]-S[1]", "got '1.5' in layer 1"),
        ("SC[0,3]-S[1]", "SC has maps of at least 1, got 0 in layer 1 ('SC[0,3]') of 'SC[0,3]-S[1]'"),
        (
            "SC[3,3]-P[2]-S[1]",
            "no layer is called 'P' in layer 2 ('P[2]') of 'SC[3,3]-P[2]-S[1]': there are SC, MC, OP, MP, GP,",
        ),
        ("SC[3,3]--S[1]", "a layer is written NAME[number,...], which it is not in layer 2 ('') of 'SC[3,3]--S[1]'"),
        ("SC[3,3]-S[1", "which it is not in layer 2 ('S[1') of 'SC[3,3]-S[1'"),
        (
            "SC[3,3]-FC[5]",
            "wanted SC or MC or OP or MP or GP or DP or S in layer 2 ('FC[5]') of 'SC[3,3]-FC[5]': an architecture is",
        ),
        ("OP[3]-S[1]", "wanted SC or MC in layer 1 ('OP[3]') of 'OP[3]-S[1]'"),
        ("MC[3,3]-OP[0]-S[1]", "OP has pairs of at least 1, got 0 in layer 2 ('OP[0]')"),
        (
            "MC[3,3]-OP[2,2,2]-S[1]",
            "OP takes 1 or 2 numbers (pairs, smoothings), got 3 in layer 2 ('OP[2,2,2]') of 'MC[3,3]-OP[2,2,2]-S[1]'",
        ),
        ("MC[3,3]-GP[]-S[1]", "GP takes 1 or 2 numbers (pairs, smoothings), got 0 in layer 2 ('GP[]')"),
        ("MC[3,3]-MP[2,-1]-S[1]", "a layer is written NAME[number,...], which it is not in layer 2 ('MP[2,')"),
        ("oriented-larg", "did you mean 'oriented-large'?"),
        ("DP[3]-S[1]", "wanted SC or MC in layer 1 ('DP[3]') of 'DP[3]-S[1]'"),
        ("SC[3,3]-S[1]-S[1]", "wanted FC in layer 3 ('S[1]') of 'SC[3,3]-S[1]-S[1]'"),
        ("SC[3,3]-S[1]-FC[9]-SC[3,3]", "wanted FC in layer 4 ('SC[3,3]')"),
        ("SC[3,3]-DP[9]", "wanted S after the last layer of 'SC[3,3]-DP[9]'"),
        ("paper-smal", "did you mean 'paper-small'?"),
        ("", "neither a preset nor layers such as 'SC[3,3]"),
        ("resnet50", "presets: paper-small, paper, oriented-small, oriented, oriented-large"),
    ],
)
def test_errors_name_layer_token_and_whole(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Architecture.parse(text)
