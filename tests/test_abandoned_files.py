"""Temporary files of killed processes are deleted a day later; those of running ones, and all other files, stay."""

import os
import time
from pathlib import Path

import pytest

from tigranet.abandoned_files import ABANDONED_AFTER, STAGING_PREFIX, delete_abandoned_files
from tigranet.atomic_files import atomic_write
from tigranet.model import TIGraNet


def set_age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment), follow_symlinks=False)


def staged_file(folder: Path, age: float) -> Path:
    path = folder / f"{STAGING_PREFIX}{age:.0f}"
    path.write_text("half a fi")
    set_age(path, age)
    return path


def staged_folder(folder: Path, age: float) -> Path:
    path = folder / f"{STAGING_PREFIX}folder-{age:.0f}"
    path.mkdir()
    (path / "model.safetensors").write_text("half a fi")
    set_age(path, age)
    return path


@pytest.mark.parametrize("create", [staged_file, staged_folder])
def test_only_old_temporary_files_are_deleted(tmp_path, create):
    old, recent = create(tmp_path, ABANDONED_AFTER + 60), create(tmp_path, ABANDONED_AFTER - 60)
    delete_abandoned_files(tmp_path)
    assert not old.exists()
    assert recent.exists()


def test_other_files_stay_however_old_they_are(tmp_path):
    files = [tmp_path / name for name in ("answers.csv", ".hidden", "saving-1", "x.saving-1")]
    for path in files:
        path.write_text("content")
        set_age(path, 10 * ABANDONED_AFTER)
    delete_abandoned_files(tmp_path)
    assert all(path.exists() for path in files)


def test_a_link_is_deleted_and_its_target_stays(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "photo.png").write_text("content")
    link = tmp_path / f"{STAGING_PREFIX}link"
    link.symlink_to(target)
    set_age(link, 2 * ABANDONED_AFTER)
    delete_abandoned_files(tmp_path)
    assert not link.is_symlink()
    assert (target / "photo.png").exists()


def test_a_missing_folder_is_no_error(tmp_path):
    delete_abandoned_files(tmp_path / "missing")


def test_the_next_file_that_is_written_to_the_folder_deletes_them(tmp_path):
    old = staged_file(tmp_path, 2 * ABANDONED_AFTER)
    with atomic_write(tmp_path / "answers.csv") as file:
        file.write("path,label\n")
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"], old


def test_the_next_model_that_is_saved_to_the_folder_deletes_them(tmp_path):
    staged_folder(tmp_path, 2 * ABANDONED_AFTER)
    TIGraNet("SC[2,1]-S[1]-FC[2]", 2).save_pretrained(tmp_path)
    assert not list(tmp_path.glob(".*"))
