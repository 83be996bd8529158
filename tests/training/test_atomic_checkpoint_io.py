"""A checkpoint is the previous or the new one at every moment, wherever the temporary folder is."""

import os
import shutil
import tempfile

import pytest
import torch

from tigranet.training.atomic_checkpoint_io import AtomicCheckpointIO


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    checkpoint = {"epoch": 3, "state_dict": {"weight": torch.randn(2, 3)}}
    AtomicCheckpointIO().save_checkpoint(checkpoint, tmp_path / "new" / "last.ckpt")
    loaded = AtomicCheckpointIO().load_checkpoint(tmp_path / "new" / "last.ckpt", weights_only=True)
    assert loaded["epoch"] == 3
    assert torch.equal(loaded["state_dict"]["weight"], checkpoint["state_dict"]["weight"])
    assert os.listdir(tmp_path / "new") == ["last.ckpt"]


def test_nothing_is_copied_and_no_file_is_made_elsewhere(tmp_path, monkeypatch):
    """Only a rename within one folder is atomic."""

    def refuse(*arguments, **options):
        raise AssertionError("a copy is not atomic")

    for module, name in ((tempfile, "mkstemp"), (shutil, "move"), (shutil, "copyfileobj"), (shutil, "copy2")):
        monkeypatch.setattr(module, name, refuse)
    AtomicCheckpointIO().save_checkpoint({"epoch": 1}, tmp_path / "last.ckpt")
    AtomicCheckpointIO().save_checkpoint({"epoch": 2}, tmp_path / "last.ckpt")
    assert torch.load(tmp_path / "last.ckpt", weights_only=True) == {"epoch": 2}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_previous_checkpoint_stays_if_writing_fails(tmp_path, monkeypatch, error):
    AtomicCheckpointIO().save_checkpoint({"epoch": 1}, tmp_path / "last.ckpt")

    def fail(checkpoint, file):
        file.write(b"half a fi")
        raise error

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(type(error)):
        AtomicCheckpointIO().save_checkpoint({"epoch": 2}, tmp_path / "last.ckpt")
    monkeypatch.undo()
    assert torch.load(tmp_path / "last.ckpt", weights_only=True) == {"epoch": 1}
    assert os.listdir(tmp_path) == ["last.ckpt"]


def test_storage_options_are_refused(tmp_path):
    with pytest.raises(TypeError, match="storage options"):
        AtomicCheckpointIO().save_checkpoint({}, tmp_path / "last.ckpt", storage_options={"key": 1})
