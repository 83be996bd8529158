import json

import pytest
import safetensors
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from tigranet.safetensors_header import MAX_HEADER_BYTES, StoredTensor, read_safetensors_header


def write(path, header, data=b"", length=None):
    """Write a file of any header, given as bytes or as a value."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.uint8])
def test_a_file_of_the_library_is_read(tmp_path, dtype):
    tensors = {
        "one": torch.ones(3, 0, 2),
        "two": torch.zeros((), dtype=dtype),
        "three": torch.ones(2, 5, dtype=dtype),
        "four": torch.ones(1000),
    }
    safetensors.torch.save_file(tensors, tmp_path / "x", {"key": "value"})
    header = read_safetensors_header(tmp_path / "x")
    assert {name: tensor.shape for name, tensor in header.tensors.items()} == {
        name: tuple(tensor.shape) for name, tensor in tensors.items()
    }
    assert header.metadata == {"key": "value"}
    assert header.tensors["four"] == StoredTensor("F32", (1000,))


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ({"w": entry()}, b"", ["8 bytes", "holds 0"]),
        ({"w": entry()}, bytes(9), ["8 bytes", "holds 9"]),
        ({"w": entry(), "v": entry()}, bytes(8), ["overlap"]),
        ({"w": entry(offsets=(8, 16))}, bytes(16), ["gap"]),
        ({"w": entry(shape=(3,))}, bytes(8), ["'w'", "shape"]),
        ({"w": entry(shape=(2**62, 2**62))}, bytes(8), ["'w'", "shape"]),
        ({"w": entry(shape=(-2,))}, bytes(8), ["'w'", "whole numbers"]),
        ({"w": entry(shape=(2.0,))}, bytes(8), ["'w'", "whole numbers"]),
        ({"w": entry(shape=(True, 2))}, bytes(8), ["'w'", "whole numbers"]),
        ({"w": entry(offsets=(8,))}, bytes(8), ["'w'", "whole numbers"]),
        ({"w": entry(dtype="F31")}, bytes(8), ["'w'", "F31"]),
        ({"w": entry(dtype=["F32"])}, bytes(8), ["'w'", "F32"]),
        ({"w": 5}, bytes(8), ["'w'"]),
        ({"__metadata__": {"a": 1}}, b"", ["metadata"]),
        ({"__metadata__": "a"}, b"", ["metadata"]),
        ([entry()], bytes(8), ["list"]),
        (b'{"w": 1, "w": 2}', b"", ["'w'", "more than once"]),
        (b"{" + b'"a":{' * 100_000, b"", ["nested"]),
        (b"\xff\xfe", b"", ["not JSON"]),
        (b"", b"", ["do not hold a header"]),
    ],
    ids=range(20),
)
def test_a_damaged_file_is_named_with_the_reason(tmp_path, header, data, words):
    path = write(tmp_path / "model.safetensors", header, data)
    with pytest.raises(ValueError, match=r"model\.safetensors' is not a complete safetensors file") as error:
        read_safetensors_header(path)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert len(str(error.value)) < 500
    with pytest.raises(safetensors.SafetensorError):  # The library agrees.
        safetensors.torch.load_file(path)


@pytest.mark.parametrize("wrong", [entry() | {"more": 1}, entry(shape=[1] * 100_000 + [2])], ids=["entry", "shape"])
def test_what_the_library_ignores_is_refused_too(tmp_path, wrong):
    with pytest.raises(ValueError, match=r"x' is not a complete safetensors file: tensor 'w'"):
        read_safetensors_header(write(tmp_path / "x", {"w": wrong}, bytes(8)))


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, MAX_HEADER_BYTES + 1, 3])
def test_a_wrong_length_of_the_header_is_refused(tmp_path, length):
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        read_safetensors_header(write(tmp_path / "x", {"w": entry()}, bytes(8), length))


def test_a_large_header_is_refused_before_it_is_read(tmp_path):
    with write(tmp_path / "x", b"", length=10**11).open("ab") as file:
        file.truncate(10**11 + 100)
    with pytest.raises(ValueError, match=f"{MAX_HEADER_BYTES:,}"):
        read_safetensors_header(tmp_path / "x")


@given(data=st.binary(max_size=120), length=st.integers(0, 130), entries=st.dictionaries(st.text(), st.builds(entry)))
def test_any_bytes_give_a_header_or_an_error_of_one_line(tmp_path_factory, data, length, entries):
    folder = tmp_path_factory.mktemp("fuzz")
    for path in (write(folder / "a", data, length=length), write(folder / "b", entries, data)):
        message = f"'{path}'"
        try:
            read_safetensors_header(path)
        except ValueError as error:
            message = str(error)
        assert f"'{path}'" in message
        assert "\n" not in message
