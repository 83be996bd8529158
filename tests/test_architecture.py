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
def test_an_architecture_prints_back_exactly(first, graph, order, last):
    architecture = Architecture(tuple(kind(*numbers) for kind, *numbers in (first, *graph, (S, order), *last)))
    assert Architecture.parse(str(architecture)) == architecture
    assert str(Architecture.parse(str(architecture))) == str(architecture)


def test_the_presets_of_the_paper():
    assert Architecture.parse("paper-small").layers == (
        SC(3, 3), DP(300), SC(6, 3), DP(100), S(10), FC(50), FC(30), FC(10),
    )  # fmt: skip
    assert Architecture.parse("paper").layers == (
        SC(10, 4), DP(600), SC(20, 4), DP(300), S(12), FC(500), FC(300), FC(100),
    )  # fmt: skip
    assert all(str(Architecture.parse(name)) == text for name, text in PRESETS.items())


def test_spaces_as_in_table_1_of_the_paper_are_ignored():
    spaced = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"
    assert Architecture.parse(spaced) == Architecture.parse("paper-small")
    assert str(Architecture.parse(spaced)) == PRESETS["paper-small"]


def test_default_numbers_are_not_printed():
    assert str(OP(24)) == str(OP(24, 0)) == "OP[24]"
    assert str(GP(24, 2)) == "GP[24,2]"
    assert Architecture.parse("MC[3,0]-MP[2,0]-S[0]").layers == (MC(3, 0), MP(2), S(0))
    assert str(Architecture.parse("MC[3,0]-MP[2,0]-S[0]")) == "MC[3,0]-MP[2]-S[0]"
    assert OP(2) != MP(2) != GP(2)
    with pytest.raises(ValueError, match=r"smoothings of OP .* at least 0, got -1"):
        OP(2, -1)


def test_an_architecture_is_an_immutable_value():
    a, b = Architecture.parse("paper"), Architecture.parse("paper")
    assert a == b
    assert hash(a) == hash(b)
    with pytest.raises(AttributeError):
        a.layers[0].maps = 3


def test_a_layer_without_numbers_is_its_name():
    text = "MC[4,3]-R[8]-D-LC[2,3]-GB[3]-D-GC[4,5]-MO[6]-D-R[2,0,1]-S[0]"
    assert str(Architecture.parse(text)) == text
    assert Architecture.parse(" MC[4,3] - R[8,1,3] - D [ ] - LC[2,3,8]-GB[3]-D-GC[4,5]-MO[6]- D -R[2,0,1]-S[0]") == (
        Architecture.parse(text)
    )
    assert Architecture.parse(text).num_coarsenings == 3


def test_the_pyramids_are_the_presets_with_coarsenings():
    presets = {name for name in PRESETS if Architecture.parse(name).num_coarsenings}
    assert presets == {name for name in PRESETS if name.startswith("pyramid")}
    with_group_convolutions = {name for name in PRESETS if Architecture.parse(name).has_group_convolutions}
    assert with_group_convolutions == {"pyramid-medium", "pyramid", "pyramid-large", "pyramid-224"}


def test_mixed_means_that_there_are_mc_layers():
    mixed_presets = {name for name in PRESETS if Architecture.parse(name).has_mixed_convolutions}
    pyramids = {"pyramid-tiny", "pyramid-small", "pyramid-small-224"}
    assert mixed_presets == {"oriented-small", "oriented", "oriented-large"} | pyramids


AFTER_SC = "SC or MC or OP or MP or GP or R or DP or LC or D or S"


@pytest.mark.parametrize(
    ("text", "number", "token", "values"),
    [
        ("SC[10]-DP[3]", 1, "SC[10]", ["SC", "2 numbers (maps, degree)", "got 1", "SC[maps,degree]"]),
        ("SC[3,3]-DP[1,2]-S[1]", 2, "DP[1,2]", ["DP", "1 number (num_active)", "got 2", "DP[num_active]"]),
        ("SC[3,3]-S[]", 2, "S[]", ["S", "1 number (order)", "got 0", "S[order]"]),
        ("SC[3,x]-S[1]", 1, "SC[3,x]", ["SC", "whole number for degree", "got 'x'"]),
        ("SC[3,1.5]-S[1]", 1, "SC[3,1.5]", ["whole number for degree", "got '1.5'"]),
        ("SC[0,3]-S[1]", 1, "SC[0,3]", ["maps of SC", "at least 1", "got 0"]),
        ("SC[3,3]-P[2]-S[1]", 2, "P[2]", ["'P'", "SC, MC, OP, MP, GP, R, DP, MO, LC, GC, GB, D, S, FC"]),
        ("SC[3,3]--S[1]", 2, "", ["NAME[number,...]", "'-'"]),
        ("SC[3,3]-S[1", 2, "S[1", ["NAME[number,...]", "brackets"]),
        ("SC[3,3]-FC[5]", 2, "FC[5]", [f"expected {AFTER_SC}, got FC", Architecture.ORDER]),
        ("OP[3]-S[1]", 1, "OP[3]", ["expected SC or MC or LC, got OP", Architecture.ORDER]),
        ("MC[3,3]-OP[0]-S[1]", 2, "OP[0]", ["pairs of OP", "at least 1", "got 0"]),
        ("MC[3,3]-OP[2,2,2]-S[1]", 2, "OP[2,2,2]", ["OP", "1 or 2 numbers (pairs, smoothings)", "got 3"]),
        ("MC[3,3]-GP[]-S[1]", 2, "GP[]", ["GP", "1 or 2 numbers (pairs, smoothings)", "got 0"]),
        ("MC[3,3]-MP[2,-1]-S[1]", 2, "MP[2,", ["NAME[number,...]", "brackets"]),
        ("DP[3]-S[1]", 1, "DP[3]", ["expected SC or MC or LC, got DP"]),
        ("LC[3,4]-MO[2]-S[1]", 1, "LC[3,4]", ["size of LC", "odd", "got 4"]),
        ("LC[3,3]-GB[2]-MO[2]-S[1]", 2, "GB[2]", ["size of GB", "odd", "got 2"]),
        ("LC[3,3]-GC[2,6]-MO[2]-S[1]", 2, "GC[2,6]", ["size of GC", "odd", "got 6"]),
        ("LC[3,3,6]-MO[2]-S[1]", 1, "LC[3,3,6]", ["orientations of LC", "multiple of 4", "got 6"]),
        ("LC[3,3,68]-MO[2]-S[1]", 1, "LC[3,3,68]", ["orientations of LC", "at most 64", "got 68"]),
        ("LC[3,3]-S[1]", 2, "S[1]", ["expected GC or GB or MO or D, got S"]),
        ("LC[3,3]-MC[4,2]-S[1]", 2, "MC[4,2]", ["expected GC or GB or MO or D, got MC"]),
        ("LC[3,3]-D-S[1]", 3, "S[1]", ["S does not work on features with orientations", "write MO before it"]),
        ("LC[3,3]-D-LC[3,3]-MO[2]-S[1]", 3, "LC[3,3]", ["LC does not work on features", "write MO before it"]),
        ("MC[3,3]-D-GB[3]-MO[2]-S[1]", 3, "GB[3]", ["GB does not work on maps", "write LC before it"]),
        ("LC[3,3]-MO[2]-D-MO[2]-S[1]", 4, "MO[2]", ["MO does not work on maps", "write LC before it"]),
        ("D-MC[3,3]-S[1]", 1, "D", ["expected SC or MC or LC, got D"]),
        ("MC[3,3]-D[2]-S[1]", 2, "D[2]", ["D takes no numbers", "got 1", "write D"]),
        ("MC[3,3]-R[]-S[1]", 2, "R[]", ["1 or 2 or 3 numbers (pairs, smoothings, degree)", "got 0"]),
        ("MC-S[1]", 1, "MC", ["MC takes 2 numbers (maps, degree)", "got 0"]),
        ("SC[3,3]-S[1]-S[1]", 3, "S[1]", ["expected FC, got S"]),
        ("SC[3,3]-S[1]-FC[9]-SC[3,3]", 4, "SC[3,3]", ["expected FC, got SC"]),
    ],
)
def test_errors_name_the_layer_and_the_whole_text(text, number, token, values):
    with pytest.raises(ValueError, match=re.escape(f"in layer {number} ('{token}') of '{text}'")) as error:
        Architecture.parse(text)
    assert all(value in str(error.value) for value in values), str(error.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SC[3,3]-DP[9]", ["expected S", "'SC[3,3]-DP[9]'", Architecture.ORDER]),
        ("paper-smal", ["'paper-smal'", "did you mean 'paper-small'?"]),
        ("oriented-larg", ["'oriented-larg'", "did you mean 'oriented-large'?"]),
        ("", ["preset", "SC[3,3]", "got ''"]),
        ("resnet50", ["'resnet50'", "paper-small, paper, oriented-small, oriented, oriented-large"]),
    ],
)
def test_errors_suggest_a_remedy(text, values):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        Architecture.parse(text)
