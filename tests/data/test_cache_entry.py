import json
import os
import zlib

import numpy as np
import pytest
import torch

from tigranet.data import cache_entry
from tigranet.data.cache_entry import CacheEntry, EntryDescription

PIXELS = np.random.default_rng(0).random((2, 1, 3, 3), dtype=np.float32)
DESCRIPTION = EntryDescription(PIXELS.shape, [0, 2], [(1, "the file is empty")], [], zlib.crc32(PIXELS.tobytes()))


@pytest.fixture
def entry(tmp_path):
    """A complete entry of two images and one unreadable file."""
    entry = CacheEntry(tmp_path / "0123.f4")
    staged = entry.staged_file()
    staged.write_bytes(PIXELS.tobytes())
    entry.publish(staged, DESCRIPTION)
    return entry


def test_an_entry_is_loaded_as_it_was_written(entry, tmp_path):
    pixels, description = entry.load(3, 3)
    assert torch.equal(pixels, torch.from_numpy(PIXELS))
    assert description == DESCRIPTION
    assert {path.name for path in tmp_path.iterdir()} == {"0123.f4", "0123.json"}


def test_staged_files_have_different_names_and_are_found(entry):
    staged = [entry.staged_file() for _ in range(3)]
    for path in staged:
        path.touch()
    assert sorted(entry.staged_files()) == sorted(staged)
    assert len(set(staged)) == 3


def test_the_pixels_stay_valid_when_the_entry_is_replaced_or_deleted(entry):
    pixels, _ = entry.load(3, 3)
    staged = entry.staged_file()
    staged.write_bytes(bytes(72))
    entry.publish(staged, EntryDescription((2, 1, 3, 3), [0, 2], [(1, "")], [], zlib.crc32(bytes(72))))
    zeros, _ = entry.load(3, 3)
    entry.pixel_file.unlink()
    assert torch.equal(pixels, torch.from_numpy(PIXELS))
    assert not zeros.any()
    assert entry.load(3, 3) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        PIXELS.tobytes()[:-4],
        PIXELS.tobytes() + bytes(4),
        PIXELS.tobytes()[:-4] + np.float32("nan").tobytes(),
        bytes([PIXELS.tobytes()[0] ^ 1]) + PIXELS.tobytes()[1:],
        "folder",
        "pipe",
        "missing",
    ],
    ids=["empty", "truncated", "too long", "nan", "one bit", "folder", "pipe", "missing"],
)
@pytest.mark.parametrize("name", ["pixel_file", "description_file"])
def test_a_damaged_file_is_no_entry_and_can_be_replaced(entry, name, content):
    path = getattr(entry, name)
    path.unlink()
    if content == "folder":
        path.mkdir()
        (path / "something").touch()
    elif content == "pipe":
        os.mkfifo(path)
    elif content != "missing":
        path.write_bytes(content)
    assert entry.load(3, 3) is None
    staged = entry.staged_file()
    staged.write_bytes(PIXELS.tobytes())
    entry.publish(staged, DESCRIPTION)
    assert entry.load(3, 3) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 1, 3]},
        {"shape": [2, 1, 9, 1]},
        {"shape": [-2, -1, 3, 3]},
        {"shape": [10**30, 1, 3, 3]},
        {"shape": [1, 2, 3, 3]},
        {"shape": "2133"},
        {"shape": None},
        {"read": [2, 0]},
        {"read": [0, 1]},
        {"read": [0, 99]},
        {"read": [0.0, 2.0]},
        {"read": [False, 2]},
        {"read": {}},
        {"broken": []},
        {"broken": [[1, None]]},
        {"broken": [[1]]},
        {"broken": [["1", "the file is empty"]]},
        {"broken": [[[1], "the file is empty"]]},
        {"broken": 3},
        {"temporary": [0]},
        {"temporary": None},
        {"crc32": 1},
        {"crc32": "x"},
    ],
    ids=str,
)
def test_a_wrong_description_is_no_entry(entry, change):
    fields = json.loads(entry.description_file.read_text())
    del fields["description_crc32"]
    for wrong in (fields | change, {name: value for name, value in fields.items() if name not in change}):
        wrong["description_crc32"] = cache_entry._text_checksum(wrong)
        entry.description_file.write_text(json.dumps(wrong))
        assert entry.load(3, 3) is None


def test_a_change_to_another_possible_description_is_found_by_its_checksum(entry):
    text = entry.description_file.read_text()
    changed = text.replace("[0, 2]", "[0, 1]").replace("[[1, ", "[[2, ")
    assert len({text, changed, text.replace("empty", "emptz")}) == 3
    for wrong in (changed, text.replace("empty", "emptz"), text.replace("description_crc32", "something else")):
        entry.description_file.write_text(wrong)
        assert entry.load(3, 3) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", "[" * 100_000, '{"shape": NaN}', "\udcff"])
def test_garbage_in_place_of_the_description_is_no_entry(entry, text):
    entry.description_file.write_bytes(text.encode(errors="surrogateescape"))
    assert entry.load(3, 3) is None


def test_an_entry_of_other_files_or_of_another_size_is_no_entry(entry):
    assert entry.load(2, 3) is None
    assert entry.load(4, 3) is None
    assert entry.load(3, 4) is None


def test_a_failure_to_publish_leaves_the_old_entry_and_no_remnant(entry, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    staged = entry.staged_file()
    staged.write_bytes(bytes(72))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match="No space"):
            entry.publish(staged, DESCRIPTION)
    assert entry.staged_files() == [staged]
    assert entry.load(3, 3) is not None
