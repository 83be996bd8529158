import json
import sys

import pytest
import torch

from tigranet.workflows.report import report
from tigranet.workflows.train import train


def test_the_cnn_is_trained_as_the_model_was(folder, tmp_path):
    recipe = {"epochs": 2, "batch_size": 7}
    train(folder, tmp_path / "m", architecture="SC[2,2]-S[2]", recipe=recipe, seed=3, train_images=30)
    result = report(tmp_path / "m", folder, tmp_path / "r", curve_images=5)
    assert result.page == tmp_path / "r" / "report.html"
    numbers = json.loads((tmp_path / "r" / "report.json").read_text())
    assert numbers["made"]["recipe"].startswith("epochs 2, batch size 7")
    assert numbers["seed"] == result.report.seed == 3
    assert numbers["data"]["how_split"] == "30 images to train, all others to test, drawn by seed 3"
    assert [sum(numbers["data"]["images"][part]) for part in ("train", "validation", "test")] == [30, 0, 10]
    assert [subject.by_angle.images for subject in result.report.subjects] == [5, 5]


def test_without_an_output_folder_nothing_is_written_and_matplotlib_is_not_needed(folder, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    before = set(tmp_path.rglob("*"))
    result = report(model, folder, cnn=False, curve_images=3)
    assert result.page is None
    assert len(result.report.subjects) == 1
    assert set(tmp_path.rglob("*")) == before
    with pytest.raises(ImportError, match=r"pip install 'tigranet\[figures\]'"):
        report(model, folder, tmp_path / "r")


def test_other_data_are_refused_before_the_cnn_is_trained(small, model, tmp_path, monkeypatch):
    monkeypatch.setattr("tigranet.workflows.report.train_plain_cnn", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match=r"2 classes.*small"):
        report(model, small, tmp_path / "r")


def test_a_gpu_that_cannot_train_is_refused_before_anything_is_loaded(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model = tmp_path / "none"
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES=1"):
        report(model, folder, tmp_path / "r", device="cuda:1")
