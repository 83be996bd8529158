import io
import zipfile

import pytest
import torch

from tigranet.training.checkpoint_file import load_checkpoint

STATE = {"weight": torch.rand(3, 2), "batches": torch.tensor(4)}
CONTENT = {
    "epoch": 1,
    "global_step": 9,
    "state_dict": STATE,
    "loops": {},
    "callbacks": {},
    "optimizer_states": [],
    "lr_schedulers": [],
}


def saved(content):
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def compressed(data):
    """The same archive with compressed entries, which would be unpacked to any size."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    return file.getvalue()


def flipped(data):
    """The same archive with one changed byte in the numbers of the first tensor."""
    position = data.index(STATE["weight"].numpy().tobytes())
    return data[:position] + bytes([data[position] ^ 255]) + data[position + 1 :]


def test_a_checkpoint_is_loaded(tmp_path):
    (tmp_path / "last.ckpt").write_bytes(saved(CONTENT))
    content = load_checkpoint(tmp_path / "last.ckpt", STATE)
    assert torch.equal(content["state_dict"]["weight"], STATE["weight"])


def test_averaged_weights_are_checked_like_the_weights(tmp_path):
    path = tmp_path / "last.ckpt"
    path.write_bytes(saved(CONTENT | {"averaged_state_dict": STATE}))
    assert torch.equal(load_checkpoint(path, STATE, averaged=True)["averaged_state_dict"]["weight"], STATE["weight"])
    for wrong, word in ((None, "averaged_state_dict"), ({}, "weight"), ({**STATE, "weight": torch.ones(1)}, "weight")):
        path.write_bytes(saved(CONTENT | {"averaged_state_dict": wrong}))
        load_checkpoint(path, STATE)
        with pytest.raises(ValueError, match=rf"last\.ckpt'.*'{word}'.* Delete it"):
            load_checkpoint(path, STATE, averaged=True)


GOOD = saved(CONTENT)
DAMAGED = {
    "empty": (b"", ["empty", "0 bytes"]),
    "text": (b"no checkpoint", ["13 bytes"]),
    "zeros": (bytes(5000), ["5,000 bytes"]),
    "first half": (GOOD[: len(GOOD) // 2], ["not a complete archive"]),
    "without its last byte": (GOOD[:-1], []),
    "second half": (GOOD[len(GOOD) // 2 :], []),
    "changed byte": (flipped(GOOD), ["data/", "damaged"]),
    "compressed": (compressed(GOOD), ["compressed"]),
    "old format of PyTorch": (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", ["not a complete archive"]),
    "empty archive": (b"PK\x05\x06" + bytes(18), []),
    "list": (saved([1, 2]), ["list"]),
    "tensor": (saved(torch.ones(3)), ["Tensor"]),
    "code": (saved({"state_dict": io.BytesIO}), []),
    "without state": (saved({**CONTENT, "state_dict": None}), ["'state_dict'", "NoneType"]),
    "without epoch": (saved({key: CONTENT[key] for key in CONTENT if key != "epoch"}), ["'epoch'"]),
    "text for a number": (saved({**CONTENT, "global_step": "9"}), ["'global_step'", "str"]),
    "list of callbacks": (saved({**CONTENT, "callbacks": []}), ["'callbacks'", "list"]),
    "text for a tensor": (saved({**CONTENT, "state_dict": {**STATE, "weight": "x"}}), ["'weight'", "str"]),
    "other shape": (saved({**CONTENT, "state_dict": {**STATE, "weight": torch.ones(2, 3)}}), ["(3, 2)", "(2, 3)"]),
    "huge shape": (
        saved({**CONTENT, "state_dict": {**STATE, "weight": torch.ones(1).expand(10**12)}}),
        ["'weight'", "1000000000000"],
    ),
    "other type": (saved({**CONTENT, "state_dict": {**STATE, "batches": torch.ones(())}}), ["'batches'", "float32"]),
    "tensor missing": (saved({**CONTENT, "state_dict": {"batches": STATE["batches"]}}), ["no 'weight'"]),
    "tensor too many": (saved({**CONTENT, "state_dict": {**STATE, "other": torch.ones(1)}}), ["no 'other'"]),
    "NaN": (saved({**CONTENT, "state_dict": {**STATE, "weight": STATE["weight"] * torch.nan}}), ["'weight'", "NaN"]),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_checkpoint_is_an_error_of_one_line_with_its_path_and_the_remedy(tmp_path, case):
    content, words = DAMAGED[case]
    (tmp_path / "last.ckpt").write_bytes(content)
    with pytest.raises(ValueError, match=r"last\.ckpt'.* Delete it") as error:
        load_checkpoint(tmp_path / "last.ckpt", STATE)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="not a regular file"):
        load_checkpoint(tmp_path)
