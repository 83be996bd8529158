import os
import sys
from pathlib import Path

import pytest

from images import fill
from tigranet.workflows.compare import compare
from tigranet.workflows.figures import figures
from tigranet.workflows.output_folder import (
    check_apart_from_data,
    check_output_folder,
    has_matplotlib,
    require_matplotlib,
)
from tigranet.workflows.report import report
from tigranet.workflows.train import train


def test_a_folder_that_can_be_created_is_accepted(tmp_path):
    check_output_folder(tmp_path, "model")
    check_output_folder(tmp_path / "new" / "newer", "model")
    assert not (tmp_path / "new").exists()


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"report.*file"):
        check_output_folder(tmp_path / "file", "report")
    with pytest.raises(PermissionError, match=r"below.*file"):
        check_output_folder(tmp_path / "file" / "below", "report")


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=str(tmp_path)):
        check_output_folder(tmp_path / "new", "report")


@pytest.fixture
def photos(tmp_path):
    return fill(tmp_path / "photos", {"cats": 1, "dogs": 1})


def test_the_folder_of_the_images_is_refused_by_any_of_its_names(photos, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("photos")
    monkeypatch.chdir(photos)
    for name in (photos, tmp_path / "link", photos / "cats" / "..", Path(), Path("../photos/")):
        for data in (photos, str(photos), tmp_path / "link", "."):
            with pytest.raises(ValueError, match=r"folder of the images.*model"):
                check_apart_from_data(name, data, "model")


@pytest.mark.parametrize("content", ["model", "report"])
def test_a_class_is_refused(photos, content):
    (photos / "cats" / "more").mkdir()
    (photos / "cats" / "000.png").rename(photos / "cats" / "more" / "000.png")
    for name in ("cats", "cats/more"):
        with pytest.raises(ValueError, match=rf"{name}'.*photos'.*{content}"):
            check_apart_from_data(photos / name, photos, content)


def test_a_part_is_refused(tmp_path):
    fill(tmp_path / "photos" / "train", {"cats": 1, "dogs": 1})
    with pytest.raises(ValueError, match="train'"):
        check_apart_from_data(tmp_path / "photos" / "train", tmp_path / "photos", "model")


def test_a_model_may_be_in_a_folder_of_its_own_that_the_index_ignores(photos):
    check_apart_from_data(photos / "new", photos, "model")
    (photos / "new" / "checkpoints").mkdir(parents=True)
    check_apart_from_data(photos / "new", photos, "model")
    with pytest.raises(ValueError, match=r"new'.*report"):
        check_apart_from_data(photos / "new", photos, "report")
    for name in ("config.json", "model.safetensors", "rotated.png"):
        (photos / "new" / name).touch()
    check_apart_from_data(photos / "new", photos, "model")
    check_apart_from_data(photos / "new", photos, "report")


def test_folders_elsewhere_and_other_data_are_accepted(photos, tmp_path, small):
    for folder in (tmp_path, tmp_path / "photos2", tmp_path / "model"):
        check_apart_from_data(folder, photos, "report")
    (tmp_path / "labels.csv").write_text("path,label\n")
    check_apart_from_data(tmp_path, tmp_path / "labels.csv", "model")
    check_apart_from_data(photos, small, "model")
    check_apart_from_data(Path("mnist-012"), "mnist-012", "model")


def test_every_workflow_that_fills_a_folder_checks_it_before_any_work(photos):
    files = sorted(photos.rglob("*"))
    for call in (
        lambda: train(photos, photos),
        lambda: train(photos, photos / "cats"),
        lambda: report("no model", photos, photos),
        lambda: figures("no model", photos, photos),
        lambda: compare(photos, ["no model"], photos),
    ):
        with pytest.raises(ValueError, match="folder of the images"):
            call()
    assert sorted(photos.rglob("*")) == files


def test_matplotlib_is_looked_for_without_loading_it(monkeypatch):
    assert has_matplotlib()
    require_matplotlib()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not has_matplotlib()
    with pytest.raises(ImportError, match=r"pip install 'tigranet\[figures\]'"):
        require_matplotlib()
