import io
import json
import sys
from dataclasses import replace

import pytest

from images import fill
from tigranet import TIGraNet
from tigranet.cli import main
from tigranet.data import REGISTRY, ROTATED, Isometry
from tigranet.workflows import train as workflow

SMALL = ("--architecture", "SC[2,2]-S[2]", "--epochs", "1")


@pytest.mark.usefixtures("whole_results")
def test_it_saves_a_model_and_a_picture_and_prints_the_papers_results(tigranet, tmp_path):
    code, out, err = tigranet("train", "mnist-012", "-o", tmp_path / "m", "--epochs", "1")
    assert code == 0
    for words in ("training images", "validation images", "upright", "rotated", "94 ± 0.42", "±", "saved to"):
        assert words in out
    assert "500 upright training images, never rotated" in err
    assert "jitter 0.5" in err
    assert "epoch 1/1" in err
    assert (tmp_path / "m" / "rotated.png").stat().st_size > 10_000
    assert TIGraNet.from_pretrained(tmp_path / "m").num_classes == 3


def test_rotated_training_images_are_not_called_upright(tigranet, monkeypatch, tmp_path):
    entry = replace(REGISTRY["mnist-012"], sizes=(30, 10, 20), training_motion=ROTATED, test_motion=Isometry())
    monkeypatch.setitem(REGISTRY, "rotated-digits", entry)
    code, out, err = tigranet("train", "rotated-digits", "-o", tmp_path / "m", *SMALL)
    assert code == 0
    assert "rotated-digits: 30 rotated training images" in err
    assert "test images, rotated" in out
    for text in (out, err):
        assert "upright" not in text
        assert "never rotated" not in text
    assert "rotated images of rotated-digits." in (tmp_path / "m" / "README.md").read_text()


def test_json_is_all_that_is_printed(tigranet, tmp_path):
    options = (*SMALL, "--boundary", "torus", "--no-jitter", "--json")
    code, out, _ = tigranet("train", "mnist-012", "-o", tmp_path / "m", *options)
    assert code == 0
    result = json.loads(out)
    assert result["boundary"] == "torus"
    assert result["recipe"]["jitter"] == 0
    assert 0 <= result["moved"]["mean"] <= 100
    assert result["model"] == str(tmp_path / "m")
    assert result["command"].startswith("tigranet train mnist-012 -o")
    assert "seen" not in result


def test_every_recipe_option_reaches_the_recipe(tigranet, monkeypatch, tmp_path):
    received = {}

    def stop(data, output, **arguments):
        received.update(arguments["recipe"])
        raise ValueError("enough")

    monkeypatch.setattr(workflow, "train", stop)
    options = {
        "epochs": 2, "batch_size": 7, "learning_rate": 0.1, "weight_decay": 0.01, "schedule": "cosine", "shift": 0.15,
        "zoom": 0.1, "stretch": 0.2, "warp": 0.3, "tone": 0.4, "tint": 0.05, "blur": 0.6, "cutout": 0.25,
        "smoothing": 0.5, "dropout": 0.35, "average": 0.99, "keep": "best", "patience": 3,
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    tigranet("train", "mnist-012", "-o", tmp_path / "m", *words, "--no-jitter", "--flip", "--balanced")
    assert received == options | {"jitter": 0.0, "flip": True, "balanced": True}
    received.clear()
    tigranet("train", "mnist-012", "-o", tmp_path / "m")
    assert received == {}


def test_window_and_margin_reach_the_network(tigranet, tmp_path):
    options = (*SMALL, "--window", "disc", "--margin", "2", "--json")
    code, out, err = tigranet("train", "mnist-012", "-o", tmp_path / "m", *options)
    assert code == 0
    assert "window: disc, as requested" in err
    assert (json.loads(out)["window"], json.loads(out)["margin"]) == ("disc", 2)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["window"], config["margin"]) == ("disc", 2)
    for words in (("--window", "round"), ("--margin", "-1"), ("--margin", "100000")):
        assert tigranet("train", "mnist-012", "-o", tmp_path / "n", *SMALL, *words)[0] != 0


def test_a_file_in_place_of_the_folder_is_found_before_training(tigranet, tmp_path):
    (tmp_path / "m").write_text("precious")
    code, _, err = tigranet("train", "mnist-012", "-o", tmp_path / "m")
    assert code == 1
    assert f"got the file '{tmp_path / 'm'}'" in err
    assert (tmp_path / "m").read_text() == "precious"


def test_a_folder_that_cannot_be_created_is_found_before_training(tigranet, tmp_path):
    (tmp_path / "file").write_text("precious")
    code, _, err = tigranet("train", "mnist-012", "-o", tmp_path / "file" / "m")
    assert code == 1
    assert f"'{tmp_path / 'file'}' is not a folder" in err


def test_missing_files_of_a_data_set_are_named_with_the_command_that_downloads_them(tigranet, tmp_path):
    code, _, err = tigranet("train", "mnist-rot", "--data-dir", tmp_path, "-o", tmp_path / "m")
    assert code == 1
    assert f"MNIST in '{tmp_path}'" in err
    assert f"'tigranet data fetch --data-dir {tmp_path}'" in err


def test_a_folder_is_trained_on_evaluated_and_predicted(tigranet, tmp_path, photos):
    model, table = tmp_path / "m", tmp_path / "out.csv"
    code, out, err = tigranet("train", photos, "-o", model, "--epochs", "2")
    assert code == 0
    assert "broken.png: the file is empty" in err.replace("\n", "")
    assert "training images" in out
    assert TIGraNet.from_pretrained(model).class_names == ("digit 0", "digit 1", "digit 2")
    _, out, _ = tigranet("evaluate", model, photos, "--json")
    assert json.loads(out)["images"] == 6
    code, out, err = tigranet("predict", model, photos, "--csv", table)
    assert code == 0, err
    assert out == ""
    assert "broken.png: the file is empty" in err.replace("\n", "")
    rows = table.read_text().splitlines()
    assert rows[0] == "path,label,probability,novelty"
    assert len(rows) == 41
    _, out, err = tigranet("predict", model, photos / "digit 0", "--json", "--reject", "1")
    assert [line.split()[0] for line in err.splitlines()[1:]] == ["unknown"]
    assert {json.loads(line)["label"] for line in out.splitlines()} == {"unknown"}


def test_the_device_and_the_accelerator_must_not_contradict(tigranet, tmp_path):
    command = ("train", "mnist-012", "-o", tmp_path / "m", "--accelerator", "gpu", "--device", "cpu")
    code, _, err = tigranet(*command)
    assert code == 1
    assert "'cpu'" in err
    assert "'gpu'" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("options", [("--device", "cpu"), ("--accelerator", "cpu")])
def test_it_trains_on_the_device_that_was_named(tigranet, monkeypatch, tmp_path, options):
    received = []

    def stop(*_, hardware, **__):
        received.append(hardware.accelerator)
        raise ValueError("enough")

    monkeypatch.setattr("tigranet.training.fit_network.fit", stop)
    tigranet("train", "mnist-012", *SMALL, "-o", tmp_path / "m", *options)
    assert received == ["cpu"]


def test_an_error_after_training_says_where_the_model_is(tigranet, monkeypatch, tmp_path):
    def fail(*_, **__):
        raise MemoryError("too large")

    monkeypatch.setattr(workflow, "measure", fail)
    code, out, err = tigranet("train", "mnist-012", *SMALL, "-o", tmp_path / "m")
    assert (code, out) == (1, "")
    first, second = err.splitlines()[-2:]
    assert first == "tigranet: MemoryError: too large"
    assert f"saved in '{tmp_path / 'm'}'" in second
    assert TIGraNet.from_pretrained(tmp_path / "m").num_classes == 3


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_training_says_how_to_continue(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr("tigranet.training.fit_network.fit", interrupt)
    command = ("train", "mnist-012", *SMALL, "-o", tmp_path / "m")
    code, _, err = tigranet(*command)
    assert code == 130
    assert "nothing is kept" in " ".join(err.split())
    (tmp_path / "m" / "checkpoints").mkdir(parents=True)
    (tmp_path / "m" / "checkpoints" / "last.ckpt").touch()
    code, _, err = tigranet(*command, "--resume")
    assert code == 130
    assert "--resume" in err
    code, _, err = tigranet(*command)
    assert code == 1
    assert "--overwrite" in err


def test_an_interruption_after_training_says_where_the_model_is(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr(workflow, "measure", interrupt)
    code, _, err = tigranet("train", "mnist-012", *SMALL, "-o", tmp_path / "m")
    assert code == 130
    assert str(tmp_path / "m") in err.replace("\n", "")
    assert "--resume" not in err


def test_without_matplotlib_there_is_a_model_and_no_picture(tigranet, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = tigranet("train", "mnist-012", *SMALL, "-o", tmp_path / "m")
    assert code == 0, err
    assert "pip install 'tigranet[figures]'" in err
    assert "picture" not in out
    assert not (tmp_path / "m" / "rotated.png").exists()


def test_validation_accuracy_is_never_shown_as_test_accuracy(tigranet, tmp_path):
    for part, count in (("train", 10), ("val", 4)):
        fill(tmp_path / "photos" / part, {"a": count, "b": count}, seed=count)
    code, out, err = tigranet("train", tmp_path / "photos", *SMALL, "-o", tmp_path / "m")
    assert code == 0
    row = next(line for line in out.splitlines() if "test images" in line and "│" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["test images", "no test images"]
    for words in ("upright", "rotated ", "not interpolated", "±"):
        assert words not in out
    assert "picture of validation images" in out
    assert "photos has no test images" in err
    result = json.loads(
        tigranet("train", tmp_path / "photos", *SMALL, "-o", tmp_path / "m", "--overwrite", "--json").out
    )
    assert [result[name] for name in ("test", "moved", "nearest", "robustness", "drop")] == [None] * 5
    assert isinstance(result["validation"], float)
    for command in (
        ("evaluate", tmp_path / "m", tmp_path / "photos", "--json"),
        ("figures", tmp_path / "m", tmp_path / "photos", "-o", tmp_path / "f"),
        ("angles", tmp_path / "photos", tmp_path / "m", "-o", tmp_path / "f"),
    ):
        code, out, err = tigranet(*command)
        assert (code, out) == (1, "")
        assert err.strip().startswith("tigranet: photos has no test images: ")
        assert len(err.strip().splitlines()) == 1


def test_classes_without_test_images_are_named(tigranet, tmp_path):
    fill(tmp_path / "photos", {"a": 20, "[b]": 1, "c": 1})
    code, out, err = tigranet("train", tmp_path / "photos", *SMALL, "--train-images", "4", "-o", tmp_path / "m")
    assert code == 0
    assert "no test images of 2 classes: '[b]', 'c'" in err
    assert "18 test images; 2 of the 3 classes have none" in out
    code, _, err = tigranet("evaluate", tmp_path / "m", tmp_path / "photos")
    assert code == 0
    assert "no test images of 2 classes: '[b]', 'c'" in err


class BrokenTerminal(io.StringIO):
    """Standard output that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_finished_training_succeeds_although_nothing_can_be_printed_or_drawn(monkeypatch, capsys, tmp_path, options):
    """The picture fails, and nobody reads the table: the model is saved, so the exit code is 0."""

    def fail(*_):
        raise MemoryError("too many classes")

    monkeypatch.setattr("tigranet.figures.rotated_examples.save_rotated", fail)
    monkeypatch.setattr(sys, "argv", ["tigranet", "train", "mnist-012", *SMALL, "-o", str(tmp_path / "m"), *options])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", BrokenTerminal())
        with pytest.raises(SystemExit) as exit_info:
            main()
    assert not exit_info.value.code
    err = capsys.readouterr().err
    assert "too many classes" in err
    assert f"the model is saved in '{tmp_path / 'm'}'" in err
    assert TIGraNet.from_pretrained(tmp_path / "m").num_classes == 3


def test_training_goes_on_although_nobody_reads_its_progress(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["tigranet", "train", "mnist-012", *SMALL, "-o", str(tmp_path / "m")])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", BrokenTerminal())
        with pytest.raises(SystemExit) as exit_info:
            main()
    assert not exit_info.value.code
    assert "saved to" in capsys.readouterr().out


def test_a_quick_model_is_evaluated_and_predicts(tigranet, tmp_path, photos):
    code, out, err = tigranet("train", photos, "-o", tmp_path / "m", "--quick")
    assert code == 0
    assert "cross-validation" in err
    assert "test images, as they are" in out
    assert "upright" not in out
    code, out, _ = tigranet("evaluate", tmp_path / "m", photos)
    assert (code, "as they are" in out) == (0, True)
    code, out, _ = tigranet("predict", tmp_path / "m", photos)
    assert code == 0


def test_a_training_continues_with_a_shipped_network(tigranet, tmp_path):
    command = ("train", "mnist-012", "--epochs", "1", "-o", tmp_path / "m")
    code, _, err = tigranet(*command, "--init", "paper-mnist-012")
    assert code == 0
    assert "starts from 'paper-mnist-012'" in err
    code, _, err = tigranet(*command, "--overwrite", "--init", "paper-mnist-012", "--architecture", "paper")
    assert code == 1
    assert "architecture of 'paper-mnist-012'" in err
    code, _, err = tigranet(*command, "--overwrite", "--init", "nothing")
    assert (code, "nothing" in err) == (1, True)
