import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigranet import TIGraNet
from tigranet.architecture import DP, FC, GP, MC, MP, OP, PRESETS, SC, Architecture, S
from tigranet.model_limits import (
    MAX_CLASSES,
    MAX_PARAMETERS,
    check_class_names,
    check_integer,
    check_model_size,
    check_number,
    count_parameters,
)

numbers = st.integers(1, 6)
convolutions = st.tuples(st.sampled_from([SC, MC]), numbers, numbers)
products = st.tuples(st.sampled_from([OP, MP, GP]), numbers, numbers)
pooling = st.tuples(st.just(DP), numbers)


@settings(deadline=None, max_examples=30)
@given(
    convolutions,
    st.lists(convolutions | products | pooling, max_size=5),
    st.lists(numbers, max_size=3),
    numbers,
    numbers,
)
def test_parameters_are_counted_as_pytorch_counts_them(first, others, hidden, num_classes, in_maps):
    graph_layers = [kind(*values) for kind, *values in (first, *others)]
    architecture = Architecture((*graph_layers, S(in_maps), *map(FC, hidden)))
    with torch.device("meta"):
        net = TIGraNet(architecture, num_classes, in_maps)
    expected = sum(parameter.numel() for parameter in net.parameters())
    assert count_parameters(architecture, num_classes, in_maps) == expected


def test_the_presets_are_far_below_every_limit():
    for name in PRESETS:
        assert count_parameters(Architecture.parse(name), 1000, 3) < MAX_PARAMETERS / 1000


def test_a_network_of_too_many_parameters_is_refused_by_its_number():
    architecture = Architecture.parse("SC[3,3]-S[10]-FC[50000]-FC[50000]")
    with pytest.raises(ValueError, match=rf"{MAX_PARAMETERS:,} parameters.*FC\[50000\].*2,503,900,023"):
        check_model_size(architecture, 10, 1)


@pytest.mark.parametrize("value", [True, 2.0, "2", None, [2], float("nan"), "x" * 10**7, {}, object()], ids=range(9))
def test_other_types_are_no_integers(value):
    with pytest.raises(TypeError, match=r"num_classes.*integer") as error:
        check_integer("num_classes", value, 10)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("value", [0, -1, 11, 10**30, -(10**5000)], ids=range(5))
def test_integers_out_of_range_are_refused(value):
    with pytest.raises(ValueError, match=r"num_classes.*at least 1.*at most 10") as error:
        check_integer("num_classes", value, 10)
    assert len(str(error.value)) < 300


def test_integers_of_numpy_become_python_integers():
    assert type(check_integer("x", np.int64(3), 10)) is int
    assert type(check_number("x", np.float32(0.5))) is float
    assert type(check_number("x", 1)) is float


@pytest.mark.parametrize("value", [True, "1.0", b"1", None, [1.0], 1j])
def test_other_types_are_no_numbers(value):
    with pytest.raises(TypeError, match=r"span.*number"):
        check_number("span", value)


def test_an_integer_too_large_for_floating_point_is_refused():
    with pytest.raises(ValueError, match="span"):
        check_number("span", 10**400)


@pytest.mark.parametrize(
    ("names", "kind", "words"),
    [
        ("ab", TypeError, ["list of strings", "'ab'"]),
        (5, TypeError, ["list of strings", "5"]),
        ({"a": 1, "b": 2}, TypeError, ["list of strings"]),
        (["a", 5], TypeError, ["5", "position 1"]),
        (["a", None], TypeError, ["None", "position 1"]),
        (["a", ["b"]], TypeError, ["['b']", "position 1"]),
        (["a"], ValueError, ["1 names", "2 classes"]),
        (["a", "b", "c"], ValueError, ["3 names", "2 classes"]),
        ([], ValueError, ["0 names", "2 classes"]),
        (["a", "a"], ValueError, ["'a'", "2 times"]),
        (["x\n" * 10**6] * 2, ValueError, ["x\\nx", "2 times"]),
    ],
    ids=range(11),
)
def test_wrong_class_names_are_refused(names, kind, words):
    with pytest.raises(kind) as error:
        check_class_names(names, 2)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert len(str(error.value)) < 600


@given(st.lists(st.text(), unique=True, min_size=1))
def test_all_other_names_stay_as_they_are(names):
    """Also those with control characters: they are data."""
    assert check_class_names(tuple(names), len(names)) == names
    assert check_class_names(None, len(names)) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_classes": 10**8}, ["num_classes", f"{MAX_CLASSES:,}", "100,000,000"]),
        ({"in_maps": 10**9}, ["in_maps", "10,000", "1,000,000,000"]),
        ({"image_size": 0}, ["image_size", "0"]),
        ({"image_size": 10**9}, ["image_size", "1,000,000,000"]),
        ({"span": 0}, ["span", "0"]),
        ({"span": float("nan")}, ["span", "nan"]),
        ({"diagonal": float("inf")}, ["diagonal", "inf"]),
        ({"diagonal": 10**400}, ["diagonal"]),
    ],
)
def test_a_network_refuses_values_out_of_range(arguments, words, without_shape_checks):
    with pytest.raises(ValueError, match=words[0]) as error:
        TIGraNet("MC[3,3]-S[10]-FC[50]", **({"num_classes": 2} | arguments))
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_classes": 2.0},
        {"in_maps": True},
        {"image_size": "28"},
        {"span": "2"},
        {"diagonal": [1.0]},
        {"neighbours": 8.0},
        {"class_names": "ab"},
        {"architecture": 5},
    ],
)
def test_a_network_refuses_values_of_other_types(arguments, without_shape_checks):
    with pytest.raises(TypeError, match=next(iter(arguments))):
        TIGraNet(**({"architecture": "SC[3,3]-S[10]-FC[50]", "num_classes": 2} | arguments))
