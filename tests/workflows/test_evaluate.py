from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from images import save
from tigranet import TIGraNet
from tigranet.evaluation import measure_robustness
from tigranet.training.hardware import Hardware
from tigranet.workflows.evaluate import evaluate
from tigranet.workflows.train import train


def test_it_measures_the_saved_network(small, tmp_path):
    torch.manual_seed(1)
    net = TIGraNet("SC[2,2]-S[2]", 3, image_size=28).eval()
    net.save_pretrained(tmp_path)
    evaluation = evaluate(tmp_path, small, seed=5)
    assert evaluation.robustness == measure_robustness(net, small, 5)
    assert (evaluation.seed, evaluation.excluded_images, evaluation.unreadable_files) == (5, 0, ())


def test_unreadable_files_are_listed(folder, model):
    (folder / "b" / "broken.png").touch()
    assert [file.path.name for file in evaluate(model, folder).unreadable_files] == ["broken.png"]


def test_other_classes_are_refused(small, model):
    with pytest.raises(ValueError, match=r"2 classes.*small"):
        evaluate(model, small)


def test_an_unknown_device_is_refused_before_anything_is_loaded(tmp_path):
    with pytest.raises(ValueError, match="'gpu'"):
        evaluate(tmp_path / "none", "mnist-012", device="gpu")


def test_it_runs_on_the_device_that_was_named(small, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path)
    assert evaluate(tmp_path, replace(small, name="x"), device="cpu").robustness.data == "x"


def test_data_without_test_images_are_refused(small, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="small has no test images"):
        evaluate(tmp_path, replace(small, test=small.test.take([])))


def test_classes_without_test_images_are_named(small, tmp_path, capsys):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path)
    zeros = small.test.take(torch.nonzero(small.test.labels == 0).flatten())
    evaluation = evaluate(tmp_path, replace(small, test=zeros), console=Console())
    assert evaluation.untested_classes == ("1", "2")
    assert "no test images of 2 classes: '1', '2'" in capsys.readouterr().out


def test_a_network_in_colour_is_trained_on_mixed_files_and_measured_on_grey_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRANET_KERNELS", "plain")
    rng = np.random.default_rng(0)
    for label, name in enumerate("ab"):
        for number in range(12):
            image = rng.integers(100 * label, 100 * label + 100, (10, 10, 3), dtype=np.uint8)
            is_grey = number % 3 == 0
            save(tmp_path / "mixed" / name / f"{number}.png", image[..., 0] if is_grey else image)
            save(tmp_path / "grey" / name / f"{number}.png", image[..., 0])
    options = {"architecture": "SC[2,2]-S[2]", "recipe": {"epochs": 2}, "hardware": Hardware("cpu")}
    trained = train(tmp_path / "mixed", tmp_path / "model", color=True, **options)
    assert trained.network.in_maps == 3
    for name in ("mixed", "grey"):
        assert evaluate(tmp_path / "model", tmp_path / name, device="cpu").robustness.data == name
