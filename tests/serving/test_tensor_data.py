import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tigranet.serving.tensor_data import (
    DATATYPES,
    check_datatype,
    check_shape,
    files_from_binary,
    files_from_json,
    tensor_from_binary,
    tensor_from_json,
    tensor_to_binary,
    tensor_to_json,
)


@given(st.sampled_from(sorted(DATATYPES)), st.data())
def test_json_and_binary_data_give_the_same_tensor(datatype, data):
    dtype = DATATYPES[datatype]
    floats = {"elements": {"allow_nan": False, "allow_infinity": False}} if dtype.kind == "f" else {}
    array = data.draw(arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=4, max_side=4), **floats))
    nested, flat = json.loads(json.dumps(array.tolist())), array.ravel().tolist()
    for values in (nested, flat):
        np.testing.assert_array_equal(tensor_from_json(values, datatype, array.shape), array)
    result = tensor_from_binary(array.tobytes(), datatype, array.shape)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, array)


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_files_come_back_from_json_and_from_binary_data(files):
    strings = [base64.b64encode(file).decode() for file in files]
    assert files_from_json(strings, (len(files),)) == files
    binary = b"".join(len(file).to_bytes(4, "little") + file for file in files)
    assert files_from_binary(binary, (len(files),)) == files


@given(st.binary(max_size=60), st.integers(0, 5))
def test_any_bytes_are_files_or_a_value_error(data, count):
    try:
        files = files_from_binary(data, (count,))
    except ValueError:
        return
    assert len(files) == count
    assert sum(len(file) + 4 for file in files) == len(data)


def test_outputs_are_written_as_the_protocol_says():
    values = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)
    assert tensor_to_json(values) == [0.25, 0.75, 1.0, 0.0]
    assert tensor_to_binary(values) == np.array([0.25, 0.75, 1, 0], "<f4").tobytes()
    assert tensor_to_json(("a", "ç")) == ["a", "ç"]
    assert files_from_binary(tensor_to_binary(("a", "ç")), (2,)) == [b"a", "ç".encode()]


@pytest.mark.parametrize("shape", [None, "1", [1.0], [True], [-1], [2**63], [[1]], [1] * 9, {"0": 1}])
def test_a_shape_is_a_list_of_sizes(shape):
    with pytest.raises(ValueError, match="shape"):
        check_shape(shape)


@pytest.mark.parametrize("datatype", [None, "INT64", "uint8", 3, ["UINT8"], {}])
def test_a_type_is_one_that_pixels_can_have(datatype):
    with pytest.raises(ValueError, match="UINT8"):
        check_datatype(datatype)


@pytest.mark.parametrize(
    ("data", "datatype", "reason"),
    [
        (None, "UINT8", "list"),
        ({"0": 1}, "UINT8", "list"),
        ([1, 2, 3], "UINT8", "4 elements.*3"),
        ([[1, 2], [3]], "UINT8", "list"),
        ([1, 2, 3, 256], "UINT8", "255.*256"),
        ([1, 2, 3, -1], "UINT16", "-1"),
        ([1, 2, 3, 4.5], "UINT8", "UINT8"),
        (["1", "2", "3", "4"], "UINT8", "UINT8"),
        ([1, 2, 3, None], "FP32", "FP32"),
        ([1, 2, 3, 10**30], "UINT8", "UINT8"),
        ([True, False, True, 1], "BOOL", "BOOL"),
        ([0, 1, 0, 1], "BOOL", "BOOL"),
    ],
)
def test_wrong_json_data_is_refused(data, datatype, reason):
    with pytest.raises(ValueError, match=reason):
        tensor_from_json(data, datatype, (2, 2))


def test_a_huge_declared_shape_takes_no_memory():
    for shape in ((2**62, 2**62, 2**62), (2**40, 1, 1)):
        with pytest.raises(ValueError, match="elements"):
            tensor_from_json([1], "UINT8", shape)
        with pytest.raises(ValueError, match="bytes"):
            tensor_from_binary(b"1", "UINT8", shape)
        with pytest.raises(ValueError, match="elements"):
            files_from_binary(b"", shape)


@pytest.mark.parametrize("data", ["YQ==", [1], ["ab c"], ["ç"], ["YQ=="] * 2])
def test_files_in_json_are_a_list_in_base64(data):
    with pytest.raises(ValueError, match=r"base64|elements"):
        files_from_json(data, (1,))
