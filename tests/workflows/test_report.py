import io
import json
import sys
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from tigranet import TIGraNet
from tigranet.baselines.convnet import comparable_convnet
from tigranet.workflows.report import report
from tigranet.workflows.saved_run import content_hashes, write_training_file
from tigranet.workflows.train import train


@pytest.mark.usefixtures("whole_results")
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
    assert [subject.by_angle.images for subject in result.report.subjects] == [5, 5, 5]
    errors = result.page.read_text().split('id="errors"')[1]
    assert errors.count("<img ") == 2 * len(result.report.confident_mistakes)  # each error with its evidence
    assert [subject.name for subject in result.report.subjects] == [
        "TIGraNet",
        "plain CNN",
        "CNN trained with rotations",
    ]
    assert numbers["made"]["training_seconds"].keys() == {"plain CNN", "CNN trained with rotations"}
    assert numbers["history"]["epochs"] == [1, 2]
    assert "2 epochs in" in result.page.read_text()
    assert numbers["next_steps"][-1]["command"].startswith(f"tigranet predict {tmp_path / 'm'}")
    assert numbers["calibration"]["temperature"] is None  # there are no validation images
    assert numbers["calibration"]["errors"].keys() == {"upright", "turned by 90 degrees", "rotated"}


def test_one_of_the_cnns_is_trained_with_rotations_and_both_say_how_long_it_took(folder, model, tmp_path, monkeypatch):
    recipes = []

    def train_instead(network, data, recipe, *_, **__):
        recipes.append(recipe)
        return comparable_convnet(100, (), 2, 12)

    monkeypatch.setattr("tigranet.workflows.report.train_plain_cnn", train_instead)
    console = Console(file=io.StringIO(), width=500)
    result = report(model, folder, epochs=3, curve_images=3, console=console)
    assert [recipe.turned for recipe in recipes] == [False, True]
    assert [recipe.epochs for recipe in recipes] == [3, 3]
    assert console.file.getvalue().count("trained in 0 s") == 2
    assert result.report.turned[0].classes.keys() == {"TIGraNet", "plain CNN", "CNN trained with rotations"}


def test_a_damaged_or_older_table_of_losses_is_no_error(folder, model, tmp_path):
    table = model / "checkpoints" / "history.csv"
    table.parent.mkdir()
    table.write_text("epoch,loss\n1,0.5\n")
    assert report(model, folder, cnn=False, curve_images=3).report.history.losses == (0.5,)
    write_training_file(model, {"seed": 0, "quick": True})
    assert report(model, folder, cnn=False, curve_images=3).report.history is None  # of an earlier model
    write_training_file(model, {"seed": 0})
    table.write_text("damaged")
    console = Console(file=io.StringIO(), width=500)
    assert report(model, folder, cnn=False, curve_images=3, console=console).report.history is None
    assert "no training curve" in console.file.getvalue()


def test_the_temperature_is_that_of_the_training(folder, tmp_path):
    trained = train(folder, tmp_path / "m", architecture="SC[2,2]-S[2]", recipe={"epochs": 1})
    measured = report(tmp_path / "m", folder, cnn=False, curve_images=3).report.calibration
    assert measured.temperature == trained.calibration.temperature
    assert measured.scaled_errors.keys() == measured.errors.keys()


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


def test_without_test_images_the_report_measures_validation_images_and_says_so(small, tmp_path):
    """Validation images that the network was trained on are left out."""
    data = replace(
        small,
        train=small.train.take(list(range(10))),
        validation=small.train.take(list(range(5, 20))),
        test=small.test.take([]),
    )
    TIGraNet("SC[2,2]-S[2]", 3).save_pretrained(tmp_path / "m")
    write_training_file(tmp_path / "m", {"seed": 0} | content_hashes(data, data))
    console = Console(file=io.StringIO(), width=200)
    result = report(tmp_path / "m", data, tmp_path / "r", cnn=False, console=console)
    assert (result.report.part, result.excluded_images) == ("validation", 5)
    assert result.report.subjects[0].robustness.images == 10
    assert "no test images: measuring the 10 validation images instead" in console.file.getvalue()
    numbers = json.loads((tmp_path / "r" / "report.json").read_text())
    assert (numbers["part"], sum(numbers["data"]["images"]["test"])) == ("validation", 0)
    assert "No test images" in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")


def test_600_classes_need_little_memory_and_time(tmp_path, warm_process):
    """In a process of its own, whose peak memory is measured. The page of 600 classes took 11.6 GB."""
    code = """if True:
        import json, sys, time
        import torch
        from tigranet import TIGraNet
        from tigranet.data import DataSet, LabelledImages
        from tigranet.figures.rotated_examples import save_rotated
        from tigranet.workflows.report import report
        from pathlib import Path
        folder = Path(sys.argv[1])
        names = tuple(f"class {number}" for number in range(600))
        parts = [LabelledImages(torch.rand(count, 1, 8, 8), torch.arange(count) % 600) for count in (600, 600, 900)]
        data = DataSet("many", names, *parts)
        network = TIGraNet("SC[2,2]-S[1]", 600, class_names=names, image_size=8).eval()
        network.save_pretrained(folder / "m")
        start = time.process_time()
        report(folder / "m", data, folder / "r", cnn=False, curve_images=20)
        reported = time.process_time()
        save_rotated(folder / "rotated.png", network, data.test, names)
        drawn = time.process_time()
        peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]  # ru_maxrss includes the parent
        gigabytes = int(peak) / 2**20
        print(json.dumps([reported - start, drawn - reported, gigabytes]))
    """
    finished = warm_process.run(code, tmp_path)
    assert finished.returncode == 0, finished.stderr
    report_seconds, picture_seconds, gigabytes = json.loads(finished.stdout.splitlines()[-1])
    assert report_seconds < 20
    assert picture_seconds < 3
    assert gigabytes < 1.5
    assert (tmp_path / "rotated.png").is_file()
    numbers = json.loads((tmp_path / "r" / "report.json").read_text())
    assert len(numbers["confusion"]) == 600
