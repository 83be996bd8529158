import os

import pytest
import safetensors.torch
import torch

from tigranet import TIGraNet
from tigranet.safetensors_header import StoredTensor
from tigranet.stored_weights import CHUNK, check_stored_weights, is_finite, read_stored_weights

STATE = {"alpha": torch.empty(2, 3), "bias": torch.empty(4), "batches": torch.tensor(0)}


def stored(**changes):
    tensors = {
        "alpha": StoredTensor("F32", (2, 3)),
        "bias": StoredTensor("F32", (4,)),
        "batches": StoredTensor("I64", ()),
    }
    return {name: tensor for name, tensor in (tensors | changes).items() if tensor is not None}


@pytest.mark.parametrize("dtype", ["F32", "F64", "F16", "BF16"])
def test_weights_fit_in_any_one_precision(tmp_path, dtype):
    check_stored_weights(tmp_path, stored(alpha=StoredTensor(dtype, (2, 3)), bias=StoredTensor(dtype, (4,))), STATE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bias": None}, ["missing", "'bias'"]),
        ({"alpha": None, "bias": None}, ["missing", "'alpha'", "1 more"]),
        ({"other": StoredTensor("F32", ())}, ["unknown", "'other'"]),
        ({"x" * 5_000_000: StoredTensor("F32", ())}, ["unknown", "xxx"]),
        ({"alpha": StoredTensor("F32", (3, 2))}, ["'alpha'", "(2, 3)", "(3, 2)"]),
        ({"alpha": StoredTensor("F32", (6,))}, ["'alpha'", "(2, 3)", "(6,)"]),
        ({"bias": StoredTensor("F64", (4,))}, ["'bias'", "F64", "one of"]),
        ({"alpha": StoredTensor("I64", (2, 3))}, ["'alpha'", "I64"]),
        ({"alpha": StoredTensor("F8_E4M3", (2, 3))}, ["'alpha'", "F8_E4M3"]),
        ({"batches": StoredTensor("F32", ())}, ["'batches'", "torch.int64", "F32"]),
        ({"batches": StoredTensor("I32", ())}, ["'batches'", "torch.int64", "I32"]),
    ],
    ids=range(11),
)
def test_other_tensors_do_not_fit(changes, words, tmp_path):
    with pytest.raises(ValueError, match=r"model\.safetensors' does not fit config\.json") as error:
        check_stored_weights(tmp_path / "model.safetensors", stored(**changes), STATE)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_single_wrong_value_is_found(value, dtype, tmp_path):
    tensor = torch.zeros(CHUNK + 5, dtype=dtype)
    assert is_finite(tensor)
    tensor[-1] = value
    assert not is_finite(tensor)
    safetensors.torch.save_file({"good": torch.zeros(2), "layer.bad": tensor[-2:].clone()}, tmp_path / "x")
    with pytest.raises(ValueError, match=r"x'.*NaN or infinity in 'layer\.bad'"):
        read_stored_weights(tmp_path / "x", "cpu")


def test_the_largest_finite_numbers_and_integers_are_finite():
    assert is_finite(torch.tensor([torch.finfo(torch.float32).max] * 3))  # although their sum is not
    assert is_finite(torch.tensor([2**63 - 1, -(2**63)]))
    assert is_finite(torch.tensor(True))
    assert is_finite(torch.empty(0))


def test_weights_are_read(tmp_path):
    weights = {"a": torch.rand(3, 2), "b": torch.tensor(5)}
    safetensors.torch.save_file(weights, tmp_path / "x")
    loaded = read_stored_weights(tmp_path / "x", "cpu")
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="x' is not a complete safetensors file"):
        read_stored_weights(tmp_path / "x", "cpu")


def test_weights_are_read_from_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    network = TIGraNet("SC[2,2]-S[2]", 3).eval()
    network.save_pretrained(folder)
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(TIGraNet.from_pretrained(folder)(images), network(images))
    (folder / "model.safetensors").write_bytes(b"12345678{")
    with pytest.raises(ValueError, match="safetensors"):
        TIGraNet.from_pretrained(folder)
