from dataclasses import replace

import pytest
import torch
from rich.console import Console

from tigranet import TIGraNet
from tigranet.evaluation import measure_robustness
from tigranet.workflows.evaluate import evaluate


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
