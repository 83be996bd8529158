import sys

import pytest
import torch

from tigranet.data import load_user_data
from tigranet.data.leakage import content_hash
from tigranet.workflows.figures import figures
from tigranet.workflows.saved_run import write_training_file


def test_the_pictures_are_written(folder, model, tmp_path):
    drawn = figures(model, folder, tmp_path / "out")
    names = {path.name for path in drawn.files}
    assert names == {path.name for path in (tmp_path / "out").iterdir()}
    assert {"filters.png", "filters.svg", "pooling.png", "turned.png"} <= names
    assert not any(name.startswith("answers") for name in names)


def test_the_answers_of_the_baselines_are_drawn_on_request(folder, model, tmp_path):
    drawn = figures(model, folder, tmp_path / "out", baselines=True, epochs=1)
    assert "answers.png" in {path.name for path in drawn.files}


def test_training_images_are_left_out_of_the_pictures(folder, model, tmp_path):
    data, _ = load_user_data(folder)
    hashes = " ".join(content_hash(image) for image in data.test.images[:2])
    write_training_file(model, {"seed": 0, "seen": hashes, "tested": "other images"})
    assert figures(model, folder, tmp_path / "out").excluded_images == 2


def test_matplotlib_is_needed(folder, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tigranet\[figures\]'"):
        figures(model, folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_data_are_refused(small, model, tmp_path):
    with pytest.raises(ValueError, match=r"2 classes.*small"):
        figures(model, small, tmp_path / "out")


def test_a_gpu_that_cannot_train_is_refused_before_anything_is_loaded(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model = tmp_path / "none"
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES=1"):
        figures(model, folder, tmp_path / "r", device="cuda:1")
