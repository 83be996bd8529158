import csv
import io
import sys
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from tigranet import TIGraNet
from tigranet.data import load_user_data
from tigranet.data.leakage import content_hash
from tigranet.workflows.compare import compare
from tigranet.workflows.saved_run import content_hashes, write_training_file


def test_several_networks_are_compared(small, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "mine")
    comparison = compare(small, [tmp_path / "mine", "SC[2,2]-S[2]"], tmp_path / "out", images=4, degrees=60)
    assert (comparison.data, comparison.images) == ("small", 4)
    assert list(comparison.networks) == ["mine", "SC[2,2]-S[2]"]
    assert [curve.accuracy is not None for curve in comparison.networks.values()] == [True, False]
    assert comparison.networks["mine"].at == (0, 60, 90, 120, 180, 240, 270, 300, 360)
    assert {path.name for path in comparison.files} == {"angles.png", "angles.svg", "angles.csv"}
    assert all(path.exists() for path in comparison.files)
    with (tmp_path / "out" / "angles.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["change"]) for row in rows[:9]] == list(comparison.networks["mine"].change)


def test_without_an_output_folder_nothing_is_drawn(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert compare(small, ["SC[2,2]-S[2]"], images=2, degrees=90).files == ()
    with pytest.raises(ImportError, match=r"pip install 'tigranet\[figures\]'"):
        compare(small, ["SC[2,2]-S[2]"], "out")


def test_baselines_are_trained_on_the_same_data(small):
    comparison = compare(small, ["SC[2,2]-S[2]"], images=2, degrees=90, baselines=True, epochs=1)
    assert list(comparison.networks) == ["SC[2,2]-S[2]", "ConvNet", "STN"]
    assert comparison.networks["STN"].accuracy is not None


def test_folders_with_the_same_name_are_told_apart(small, tmp_path):
    for parent in ("a", "b"):
        TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / parent / "model")
    models = [tmp_path / "a" / "model", tmp_path / "b" / "model"]
    assert list(compare(small, models, images=1, degrees=180).networks) == list(map(str, models))


def save_trained_model(path, data, **run):
    """Save a network as if it had been trained on a data set."""
    TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=data.test.images.shape[-1]).save_pretrained(path)
    write_training_file(path, run | content_hashes("photos/", data))
    return path


def test_no_network_is_measured_on_training_images_of_any_of_them(folder, tmp_path):
    """All networks are measured on the same images, in any order of the arguments."""
    splits = [load_user_data(folder, seed)[0] for seed in (0, 1)]
    models = [save_trained_model(tmp_path / f"A{seed}", split, seed=seed) for seed, split in enumerate(splits)]
    hashes = [[content_hash(image) for image in split.train.images] for split in splits]
    for first, second in ((0, 1), (1, 0)):
        console = Console(file=io.StringIO(), width=300)
        comparison = compare(folder, [models[first], "SC[2,2]-S[2]", models[second]], degrees=180, console=console)
        leaked = sum(content_hash(image) in hashes[second] for image in splits[first].test.images)
        assert comparison.excluded_images == leaked > 0
        assert comparison.images == len(splits[first].test.labels) - leaked > 0
        assert f"{leaked} of {len(splits[first].test.labels)} test images of photos" in console.file.getvalue()
    # the data are split for an architecture by the seed alone
    comparison = compare(folder, ["SC[2,2]-S[2]", models[1]], degrees=180)
    assert comparison.excluded_images == sum(content_hash(image) in hashes[1] for image in splits[0].test.images)


def test_networks_that_were_trained_on_all_test_images_are_refused(folder, tmp_path):
    data, _ = load_user_data(folder)
    models = [
        save_trained_model(tmp_path / "A", data),
        save_trained_model(tmp_path / "B", replace(data, train=data.test)),
    ]
    with pytest.raises(ValueError, match=r"all 6 test images of photos.*B"):
        compare(folder, models)


def test_at_least_one_network_is_needed(small):
    with pytest.raises(ValueError, match="at least one network"):
        compare(small, [])


def test_a_gpu_that_cannot_train_is_refused_before_anything_is_loaded(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model = tmp_path / "none"
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES=1"):
        compare(folder, [model], tmp_path / "r", baselines=True, device="cuda:1")
