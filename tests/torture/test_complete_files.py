"""Half a file is noticed, whatever kind of file it is; hidden files may be incomplete."""

import json
import tarfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image
from torture.complete_files import CHECKS, incomplete_files, make_older, temporary_files

from tigranet import TIGraNet


@pytest.fixture
def folder(tmp_path):
    """A folder with one complete file of each kind."""
    TIGraNet("SC[2,1]-S[1]-FC[2]", 2).save_pretrained(tmp_path)
    torch.save({"state_dict": {"weight": torch.zeros(3)}}, tmp_path / "last.ckpt")
    (tmp_path / "answers.csv").write_text("path,label\na.png,x\n")
    (tmp_path / "report.html").write_text("<html></html>\n")
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "rotated.png")
    pyarrow.parquet.write_table(pyarrow.table({"label": ["x"]}), tmp_path / "answers.parquet")
    np.zeros((2, 1, 3, 3), np.float32).tofile(tmp_path / "pixels.f4")
    (tmp_path / "pixels.json").write_text(json.dumps({"shape": [2, 1, 3, 3]}))
    with tarfile.open(tmp_path / "shard-0.tar", "w") as archive:
        archive.add(tmp_path / "rotated.png")
    np.savez(tmp_path / "shard-0.npz", rows=np.zeros(3))
    return tmp_path


def test_complete_files_of_every_kind_pass(folder):
    assert {path.suffix for path in folder.iterdir()} == set(CHECKS)
    assert incomplete_files(folder) == []


@pytest.mark.parametrize("suffix", sorted(CHECKS))
def test_half_a_file_of_every_kind_is_noticed(folder, suffix):
    path = next(folder.glob(f"*{suffix}"))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    problems = incomplete_files(folder)
    assert problems
    assert all(path.stem in problem for problem in problems)


def test_temporary_files_may_be_incomplete_and_are_listed_once(folder):
    (folder / ".saving-1").mkdir()
    (folder / ".saving-1" / "config.json").write_text("{")
    (folder / ".saving-2").write_text("{")
    (folder / ".entry.lock").write_text("")
    assert incomplete_files(folder) == []
    assert [path.name for path in temporary_files(folder)] == [".saving-1", ".saving-2"]


def test_files_become_older(folder):
    path = folder / "answers.csv"
    modified = path.stat().st_mtime
    make_older([path], 100)
    assert path.stat().st_mtime == pytest.approx(modified - 100)
