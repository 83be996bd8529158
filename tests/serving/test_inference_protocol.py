import base64
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tigranet.serving.answer import Answer
from tigranet.serving.inference_protocol import describe_model, format_response, parse_request
from tigranet.serving.tensor_data import files_from_binary

TENSOR = {"name": "image", "shape": [1, 2, 2], "datatype": "UINT8", "data": [1, 2, 3, 4]}
ANSWER = Answer(["a", "b"], np.array([[0.75, 0.25], [0.25, 0.75]], np.float32), np.array([False, True]))


def parse(request, binary=b"", header=True):
    content = json.dumps(request).encode()
    return parse_request(content + binary, str(len(content)) if header and binary else None, max_images=4)


def test_a_request_in_json_and_one_with_binary_data_are_the_same():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    tensor = {"name": "image", "shape": [2, 2, 2, 3], "datatype": "UINT8"}
    in_json = parse({"id": "7", "inputs": [tensor | {"data": pixels.tolist()}]})
    size = {"parameters": {"binary_data_size": 24}}
    in_binary = parse({"id": "7", "inputs": [tensor | size]}, pixels.tobytes())
    for request in (in_json, in_binary):
        assert request.id == "7"
        assert request.outputs == dict.fromkeys(("label", "probability", "probabilities", "unknown"), False)
        np.testing.assert_array_equal(np.stack(request.images), pixels)


def test_files_may_be_sent_as_bytes():
    files = [b"\x89PNG", b"\xff\xd8"]
    tensor = {"name": "image", "shape": [2], "datatype": "BYTES"}
    strings = [base64.b64encode(file).decode() for file in files]
    assert parse({"inputs": [tensor | {"data": strings}]}).images == files
    binary = b"".join(len(file).to_bytes(4, "little") + file for file in files)
    size = {"parameters": {"binary_data_size": len(binary)}}
    assert parse({"inputs": [tensor | size]}, binary).images == files


def test_the_outputs_of_the_response_are_those_of_the_request():
    outputs = [{"name": "probability"}, {"name": "label", "parameters": {"binary_data": True}}]
    body, json_bytes = format_response("digits", parse({"id": "x", "inputs": [TENSOR], "outputs": outputs}), ANSWER)
    response = json.loads(body[:json_bytes])
    assert response == {
        "model_name": "digits",
        "id": "x",
        "outputs": [
            {"name": "probability", "datatype": "FP32", "shape": [2], "data": [0.75, 0.75]},
            {"name": "label", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 10}},
        ],
    }
    assert files_from_binary(body[json_bytes:], (2,)) == [b"a", b"b"]


def test_all_outputs_may_be_binary():
    request = parse({"inputs": [TENSOR], "parameters": {"binary_data_output": True}})
    body, json_bytes = format_response("digits", request, ANSWER)
    header = json.loads(body[:json_bytes])
    sizes = [output["parameters"]["binary_data_size"] for output in header["outputs"]]
    assert "id" not in header
    assert json_bytes + sum(sizes) == len(body)
    np.testing.assert_array_equal(np.frombuffer(body[-18:-2], "<f4"), ANSWER.probabilities.ravel())
    assert body[-2:] == b"\0\1"  # one byte per boolean


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ([], "object"),
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [TENSOR, TENSOR]}, "inputs"),
        ({"inputs": ["image"]}, "inputs"),
        ({"inputs": [TENSOR | {"name": "pixels"}]}, "'image'.*'pixels'"),
        ({"inputs": [TENSOR | {"shape": [4]}]}, r"\[n, height, width\]"),
        ({"inputs": [TENSOR | {"shape": [0, 2, 2], "data": []}]}, "1 to 4"),
        ({"inputs": [TENSOR | {"shape": [5, 1, 1], "data": [1] * 5}]}, "1 to 4"),
        ({"inputs": [TENSOR | {"shape": [1, 0, 2], "data": []}]}, "pixels"),
        ({"inputs": [TENSOR | {"datatype": "BYTES"}]}, r"\[n\]"),
        ({"inputs": [TENSOR | {"datatype": "INT64"}]}, "UINT8"),
        ({"inputs": [TENSOR | {"data": None}]}, "list"),
        ({"inputs": [TENSOR | {"parameters": []}]}, "parameters"),
        ({"inputs": [TENSOR | {"parameters": {"binary_data_size": 0}}]}, "binary_data_size"),
        ({"inputs": [TENSOR], "id": 7}, "id"),
        ({"inputs": [TENSOR], "id": None}, "id"),
        ({"inputs": [TENSOR], "parameters": None}, "parameters"),
        ({"inputs": [TENSOR], "outputs": None}, "outputs"),
        ({"inputs": [TENSOR], "outputs": ["label"]}, "outputs"),
        ({"inputs": [TENSOR], "outputs": [{"name": ["label"]}]}, "label"),
        ({"inputs": [TENSOR], "outputs": [{"name": "logits"}]}, "logits"),
        ({"inputs": [TENSOR], "outputs": [{"name": "label", "parameters": 3}]}, "parameters"),
    ],
)
def test_what_does_not_follow_the_protocol_is_refused(request_, reason):
    with pytest.raises(ValueError, match=reason):
        parse(request_)


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (b"", None),
        (b"{", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b'{"inputs": NaN}', None),
        (b"[" + b"1," * 1_000_001 + b"1]", None),
        (b"{}", "3"),
        (b"{}", "-1"),
        (b"{}", "1" * 5000),
        (b"{}", "\u0661"),
    ],
)
def test_what_is_not_json_is_refused(body, header):
    with pytest.raises(ValueError, match=r"JSON|bytes"):
        parse_request(body, header, 4)


def test_bytes_after_the_json_object_must_belong_to_the_input():
    with pytest.raises(ValueError, match="3 bytes follow"):
        parse({"inputs": [TENSOR]}, b"abc")
    tensor = {"name": "image", "shape": [1, 2, 2], "datatype": "UINT8"}
    for size in (3, 5, 4.0, "4", True, 2**70):
        with pytest.raises(ValueError, match="binary_data_size"):
            parse({"inputs": [tensor | {"parameters": {"binary_data_size": size}}]}, b"abcd")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from([*TENSOR, "parameters"]), JSON), st.dictionaries(st.text(max_size=3), JSON))
def test_any_json_is_a_request_or_a_value_error(changes, others):
    try:
        request = parse({**others, "inputs": [TENSOR | changes]})
    except ValueError:
        return
    assert 1 <= len(request.images) <= 4


def test_the_metadata_have_the_names_and_types_of_the_protocol():
    metadata = describe_model("digits", 1, 10)
    assert set(metadata) == {"name", "platform", "inputs", "outputs"}
    assert metadata["inputs"][0]["shape"] == [-1, -1, -1, -1]  # grey networks read colour images too
    assert metadata["outputs"][-2:] == [
        {"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]},
        {"name": "unknown", "datatype": "BOOL", "shape": [-1]},
    ]
