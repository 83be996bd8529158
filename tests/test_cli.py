import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from images import fill
from tigranet import TIGraNet, cli, training
from tigranet.cli import app, data_app, main
from tigranet.data import load_user_data
from tigranet.data.leakage import content_hash
from tigranet.graphs import grid
from tigranet.training import hardware, recipe


def tigranet(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["tigranet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, *capsys.readouterr()


def test_train_saves_a_model_and_a_picture_and_prints_the_papers_row(monkeypatch, capsys, tmp_path):
    code, out, err = tigranet(monkeypatch, capsys, "train", "mnist-012", "-o", str(tmp_path / "m"), "--epochs", "1")
    assert code in (0, None)
    for words in ("training images", "validation images", "upright", "rotated", "94 ± 0.42", "±", "saved to"):
        assert words in out
    assert "500 upright training images, never rotated" in err
    assert "jitter 0.5" in err
    assert "epoch 1/1" in err
    assert (tmp_path / "m" / "rotated.png").stat().st_size > 10_000
    assert TIGraNet.from_pretrained(tmp_path / "m").num_classes == 3


def test_evaluate_shows_what_is_lost(monkeypatch, capsys, tmp_path, trained):
    trained.save_pretrained(tmp_path)
    _, out, _ = tigranet(monkeypatch, capsys, "evaluate", str(tmp_path), "mnist-012")
    for words in ("100 test images of mnist-012", "upright", "rotated", "shifted by up to 3 pixels", "drop"):
        assert words in out
    _, out, _ = tigranet(monkeypatch, capsys, "evaluate", str(tmp_path), "mnist-012", "--json")
    assert json.loads(out)["images"] == 100
    code, _, err = tigranet(monkeypatch, capsys, "evaluate", str(tmp_path / "none"), "mnist-012")
    assert code == 1
    assert "there is none at" in err


def test_report_makes_a_page_and_its_numbers(monkeypatch, capsys, tmp_path, photos):
    names = ["digit 0", "digit 1", "digit 2"]
    TIGraNet("SC[2,2]-DP[40]-S[2]", 3, image_size=28, class_names=names).save_pretrained(tmp_path / "m")
    command = ("report", str(tmp_path / "m"), str(photos), "-o", str(tmp_path / "r"))
    code, out, err = tigranet(monkeypatch, capsys, *command, "--epochs", "1")
    assert code in (0, None), err
    for words in ("upright", "turned by 90 degrees", "rotated", "plain CNN", "report.html"):
        assert words in out
    assert "epoch 1/1" in err
    page = (tmp_path / "r" / "report.html").read_text()
    for words in ("15% of each class to validate", "--epochs 1", "digit 2", "epochs 1, batch size 50"):
        assert words in page
    numbers = json.loads((tmp_path / "r" / "report.json").read_text())
    assert len(numbers["subjects"]) == 2
    assert sum(map(sum, numbers["data"]["images"].values())) == 40
    _, out, _ = tigranet(monkeypatch, capsys, *command, "--no-cnn", "--json", "--images", "3")
    assert json.loads(out)["subjects"][0]["by_angle"]["images"] == 3
    assert "CNN trained" not in (tmp_path / "r" / "report.html").read_text()


def test_the_cnn_of_a_report_is_trained_as_the_model_was(monkeypatch, capsys, tmp_path, photos):
    options = ("--architecture", "SC[2,2]-S[2]", "--epochs", "2", "--batch-size", "7", "--seed", "3")
    tigranet(monkeypatch, capsys, "train", str(photos), "-o", str(tmp_path / "m"), *options, "--train-images", "30")
    code, out, err = tigranet(
        monkeypatch, capsys, "report", str(tmp_path / "m"), str(photos), "-o", str(tmp_path / "r"), "--json"
    )
    assert code in (0, None), err
    found = json.loads(out)
    assert found["made"]["recipe"].startswith("epochs 2, batch size 7")
    assert found["seed"] == 3
    assert found["data"]["how_split"] == "30 images to train, all others to test, drawn by seed 3"
    assert [sum(found["data"]["images"][part]) for part in ("train", "validation", "test")] == [30, 0, 10]


def test_a_network_that_knows_other_classes_is_not_measured(monkeypatch, capsys, tmp_path, photos):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28, class_names=["a", "b", "c"]).save_pretrained(tmp_path / "m")
    code, _, err = tigranet(monkeypatch, capsys, "evaluate", str(tmp_path / "m"), str(photos))
    assert code == 1
    assert (
        "the model knows the classes a, b, c, photos0 has digit 0, digit 1, digit 2: it was trained on other data"
        in err
    )


def test_images_that_a_model_was_trained_on_do_not_test_it_when_others_have_come(monkeypatch, capsys, tmp_path, photos):
    shutil.copytree(photos, tmp_path / "own")
    quick = ("--architecture", "SC[2,2]-S[2]", "--epochs", "1", "-o", str(tmp_path / "m"))
    tigranet(monkeypatch, capsys, "train", str(tmp_path / "own"), *quick)
    evaluate = ("evaluate", str(tmp_path / "m"), str(tmp_path / "own"))
    assert "is not what it was" not in tigranet(monkeypatch, capsys, *evaluate)[2]
    record = json.loads((tmp_path / "m" / "training.json").read_text())
    seen = set(record["seen"].split())
    Image.new("L", (28, 28), 77).save(tmp_path / "own" / "digit 0" / "another.png")
    code, out, err = tigranet(monkeypatch, capsys, *evaluate, "--json")
    assert code in (0, None), err
    told = re.search(
        r"of (\d+) images drawn to test it was trained on (\d+), which are left out", " ".join(err.split())
    )
    drawn, _ = load_user_data(tmp_path / "own", 0, 28)
    again = [content_hash(image) in seen for image in drawn.test.images]
    assert [int(number) for number in told.groups()] == [len(again), sum(again)]
    assert 0 < sum(again) < len(again)
    assert json.loads(out)["images"] == len(again) - sum(again)


def test_other_images_of_the_same_names_are_others(monkeypatch, capsys, tmp_path, photos):
    shutil.copytree(photos, tmp_path / "monday" / "own")
    quick = ("--architecture", "SC[2,2]-S[2]", "--epochs", "1", "-o", str(tmp_path / "m"))
    tigranet(monkeypatch, capsys, "train", str(tmp_path / "monday" / "own"), *quick)
    shutil.copytree(photos, tmp_path / "tuesday" / "own")
    for file in (tmp_path / "tuesday").rglob("[0-9]*.png"):
        with Image.open(file) as image:
            image.convert("L").point(lambda value: 255 - value).save(file)
    code, _, err = tigranet(monkeypatch, capsys, "evaluate", str(tmp_path / "m"), str(tmp_path / "tuesday" / "own"))
    assert code in (0, None), err
    assert "is not what it was" not in err


@pytest.mark.parametrize("command", ["predict", "features"])
def test_no_rows_are_an_error_and_a_good_file_stays(monkeypatch, capsys, tmp_path, command):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    good, empty = tmp_path / "good.csv", tmp_path / "empty"
    good.write_text("precious")
    empty.mkdir()
    (tmp_path / "broken.png").touch()
    for images, message in (
        (tmp_path / "nosuch.png", "there is no file or folder '"),
        (empty, "there are no images"),
        (tmp_path / "broken.png", "none of the images could be used"),
    ):
        code, _, err = tigranet(monkeypatch, capsys, command, str(tmp_path / "m"), str(images), "--csv", str(good))
        assert code == 1
        assert message in err
        assert good.read_text() == "precious"


def test_where_rows_cannot_be_written_is_said_before_the_work(monkeypatch, capsys, tmp_path, photos):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    predict = ("predict", str(tmp_path / "m"), str(photos))
    code, _, err = tigranet(monkeypatch, capsys, *predict, "--csv", str(tmp_path))
    assert (code, "it is a folder, give the name of a file" in err) == (1, True)
    code, _, err = tigranet(monkeypatch, capsys, *predict, "--csv", str(tmp_path / "a.csv"), "--json")
    assert (code, "give one of --csv, --parquet and --json" in err) == (1, True)


def test_networks_of_other_channels_are_not_turned_together(monkeypatch, capsys, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, in_maps=3, image_size=28).save_pretrained(tmp_path / "m")
    code, _, err = tigranet(monkeypatch, capsys, "angles", "mnist-012", "paper-small", str(tmp_path / "m"))
    assert code == 1
    assert (
        "reads images of 3 channels, those of mnist-012 have 1: compare networks that were all trained in colour" in err
    )


def test_a_report_that_cannot_be_is_refused_at_once(monkeypatch, capsys, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 5).save_pretrained(tmp_path / "m")
    code, _, err = tigranet(monkeypatch, capsys, "report", str(tmp_path / "m"), "mnist-012", "-o", str(tmp_path / "r"))
    assert code == 1
    assert "the model has 5 classes and reads 1 channels, mnist-012 has 3 and 1" in err
    (tmp_path / "file").write_text("precious")
    code, _, err = tigranet(
        monkeypatch, capsys, "report", str(tmp_path / "m"), "mnist-012", "-o", str(tmp_path / "file")
    )
    assert code == 1
    assert "a report is saved to a folder, got the file" in err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("tigranet.figures.")]:
        monkeypatch.delitem(sys.modules, name)
    code, _, err = tigranet(monkeypatch, capsys, "report", str(tmp_path / "m"), "mnist-012")
    assert code == 1
    assert "pip install 'tigranet[figures]'" in err


def test_json_is_all_that_is_printed(monkeypatch, capsys, tmp_path):
    options = ("--architecture", "SC[2,2]-S[2]", "--boundary", "torus", "--epochs", "1", "--no-jitter", "--json")
    code, out, _ = tigranet(monkeypatch, capsys, "train", "mnist-012", "-o", str(tmp_path / "m"), *options)
    assert code in (0, None)
    result = json.loads(out)
    assert result["boundary"] == "torus"
    assert result["recipe"]["jitter"] == 0
    assert 0 <= result["moved"]["mean"] <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "mnist-12"), "no data set or folder is called 'mnist-12': did you mean 'mnist-012'?"),
        (("train", "mnist-012", "--architecture", "SC[3]-S[1]"), "SC takes 2 numbers (maps, degree), got 1 in layer 1"),
        (("train", "mnist-012", "--epochs", "0"), "epochs is at least 1, got 0"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(monkeypatch, capsys, tmp_path, arguments, message):
    code, out, err = tigranet(monkeypatch, capsys, *arguments, "-o", str(tmp_path / "m"))
    assert code == 1
    assert out == ""
    assert message in err.replace("\n", " ")
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()


def test_a_file_in_the_way_is_found_before_training(monkeypatch, capsys, tmp_path):
    (tmp_path / "m").write_text("precious")
    code, _, err = tigranet(monkeypatch, capsys, "train", "mnist-012", "-o", str(tmp_path / "m"))
    assert code == 1
    assert "a model is saved to a folder, got the file" in err
    assert (tmp_path / "m").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_found_before_training(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("precious")
    code, _, err = tigranet(monkeypatch, capsys, "train", "mnist-012", "-o", str(tmp_path / "file" / "m"))
    assert code == 1
    assert "is not a folder that you may write to" in err


def test_an_error_that_nobody_foresaw_is_one_line_too(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tigranet.reproduction.runner.run", lambda *_, **__: [][0])
    code, _, err = tigranet(monkeypatch, capsys, "train", "mnist-012", "-o", str(tmp_path / "m"))
    assert code == 1
    assert err.splitlines()[-1] == "tigranet: IndexError: list index out of range"


def test_data_list_shows_what_is_there(monkeypatch, capsys, tmp_path):
    _, out, _ = tigranet(monkeypatch, capsys, "data", "list", "--data-dir", str(tmp_path), "--json")
    there = {name: entry["there"] for name, entry in json.loads(out).items()}
    assert there["mnist-012"]
    assert not there["mnist-rot"]
    _, out, _ = tigranet(monkeypatch, capsys, "data", "list", "--data-dir", str(tmp_path))
    assert "mnist-rot-mini" in out
    assert "eth80" in out


def test_a_set_whose_files_are_missing_names_them_and_the_command(monkeypatch, capsys, tmp_path):
    code, _, err = tigranet(
        monkeypatch, capsys, "train", "mnist-rot", "--data-dir", str(tmp_path), "-o", str(tmp_path / "m")
    )
    assert code == 1
    assert f"there is no MNIST in '{tmp_path}'" in err
    assert f"'tigranet data fetch --data-dir {tmp_path}' downloads it" in err


def test_data_check_finds_bad_files(monkeypatch, capsys, tmp_path):
    code, out, _ = tigranet(monkeypatch, capsys, "data", "check", "--data-dir", str(tmp_path))
    assert code in (0, None)
    assert "not there" in out
    (tmp_path / "mnist.npz").write_bytes(b"PK nothing of the kind")
    code, out, err = tigranet(monkeypatch, capsys, "data", "check", "--data-dir", str(tmp_path), "--json")
    assert code == 1
    assert json.loads(out)["MNIST"].startswith("bad: ")
    assert "delete those files" in err


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["tigranet", "train", "cats", "--debug"])
    with pytest.raises(ValueError, match="no data set or folder is called 'cats'"):
        main()


def test_help_shows_an_example():
    code = "import sys; sys.argv = ['tigranet', 'train', '--help']; from tigranet import cli; cli.main()"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tigranet train mnist-012 -o model/" in finished.stdout


@pytest.fixture(scope="module")
def photos(tmp_path_factory, mnist_012):
    """Forty upright digits in one folder a class, and one broken file."""
    folder = tmp_path_factory.mktemp("photos")
    for number, (image, label) in enumerate(zip(*mnist_012.train[:2], strict=True)):
        if number < 40:
            (folder / f"digit {label}").mkdir(exist_ok=True)
            Image.fromarray((image[0] * 255).byte().numpy()).save(folder / f"digit {label}" / f"{number}.png")
    (folder / "digit 1" / "broken.png").write_bytes(b"")
    return folder


def test_a_folder_is_trained_on_evaluated_and_predicted(monkeypatch, capsys, tmp_path, photos):
    model, table = str(tmp_path / "m"), tmp_path / "out.csv"
    code, out, err = tigranet(monkeypatch, capsys, "train", str(photos), "-o", model, "--epochs", "2")
    assert code in (0, None)
    assert "broken.png: the file is empty" in err.replace("\n", "")
    assert "training images" in out
    assert TIGraNet.from_pretrained(model).class_names == ("digit 0", "digit 1", "digit 2")
    _, out, _ = tigranet(monkeypatch, capsys, "evaluate", model, str(photos), "--json")
    assert json.loads(out)["images"] == 6
    code, out, err = tigranet(monkeypatch, capsys, "predict", model, str(photos), "--csv", str(table))
    assert code in (0, None), err
    assert out == ""
    assert "broken.png: the file is empty" in err.replace("\n", "")
    rows = table.read_text().splitlines()
    assert rows[0] == "path,label,probability"
    assert len(rows) == 41
    _, out, err = tigranet(monkeypatch, capsys, "predict", model, str(photos / "digit 0"), "--json", "--reject", "1")
    assert err.strip() == ""
    assert {json.loads(line)["label"] for line in out.splitlines()} == {"unknown"}


def test_a_name_that_is_not_utf_8_is_no_trouble(tmp_path, photos):
    model = tmp_path / "m"
    TIGraNet("SC[2,2]-S[2]", 2, image_size=28).save_pretrained(model)
    source = next(photos.rglob("*.png")).read_bytes()
    name = os.fsencode(tmp_path) + b"/caf\xe9.png"
    with open(name, "wb") as file:
        file.write(source)
    command = [sys.executable, "-c", "from tigranet.cli import main; main()", "predict", str(model), os.fsdecode(name)]
    finished = subprocess.run(command, capture_output=True, check=True)
    assert b"caf\xe9.png" in finished.stdout


@pytest.fixture
def bad_files(tmp_path):
    """Thirty good images, and bad ones of every kind; by name, what is said of each."""
    folder = fill(tmp_path / "bad", {"a": 15, "b": 15})
    good = (folder / "a" / "000.png").read_bytes()
    jpeg, tiff = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (50, 50), "red").save(jpeg, "JPEG")
    Image.new("L", (50, 50)).save(tiff, "TIFF")
    corrupt = bytearray(good)
    corrupt[60:90] = bytes(30)
    bomb = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Image, "MAX_IMAGE_PIXELS", None)
        Image.new("1", (10_000, 10_000)).save(bomb, "PNG")
    kinds = {
        b"corrupt.png": (bytes(corrupt), "cannot be decoded"),
        b"truncated.png": (good[: len(good) // 2], "cannot be decoded"),
        b"truncated.jpg": (jpeg.getvalue()[:650], "cannot be decoded: image file is truncated"),
        b"truncated.tif": (tiff.getvalue()[:300], "cannot be decoded"),
        b"empty.png": (good[:8], "not an image of a kind that is read here"),
        b"zero bytes.png": (b"", "the file is empty"),
        b"bomb.png": (bomb.getvalue(), "has more than 64,000,000 pixels"),
        b"text.png": (b"no image at all", "not an image of a kind that is read here"),
        b"text.tif": (b"no image at all", "not an image of a kind that is read here"),
        b"caf\xe9.png": (b"no image at all", "not an image of a kind that is read here"),
        b"a png.tif": (good, ""),  # read by what is in it
        b"a tiff.jpg": (tiff.getvalue(), ""),
        b"g\xe4nse.png": (good, ""),
    }
    for name, (content, _) in kinds.items():
        with open(os.fsencode(folder / "b") + b"/" + name, "wb") as file:
            file.write(content)
    (folder / "b" / "a folder.png").mkdir()
    return folder, {name: reason for name, (_, reason) in kinds.items()}


def test_bad_files_of_every_kind_are_listed_with_their_reasons_and_stop_nothing(tmp_path, bad_files):
    folder, reasons = bad_files
    model, table = tmp_path / "m", tmp_path / "out.csv"
    TIGraNet("SC[2,2]-S[2]", 2, image_size=12).save_pretrained(model)
    command = [sys.executable, "-c", "from tigranet.cli import main; main()"]
    told = subprocess.run(
        [*command, "predict", str(model), str(folder), "--csv", str(table)], capture_output=True, check=True
    ).stderr.decode()
    lines = told.splitlines()
    bad = {name: reason for name, reason in reasons.items() if reason}
    assert lines[0] == f"{len(bad)} files were left out:"
    for name, reason in bad.items():
        shown = os.fsdecode(name).encode(errors="backslashreplace").decode()
        assert any(f"/b/{shown}: {reason}" in line for line in lines), (name, told)
    assert len(lines) == 1 + len(bad)
    written = table.read_bytes()
    assert written.count(b"\n") == 1 + 30 + 3
    for name in reasons.keys() - bad.keys():
        assert name in written
    trained = subprocess.run(
        [*command, "train", str(folder), "-o", str(model), "--epochs", "1", "--architecture", "SC[2,2]-S[2]"],
        capture_output=True,
        check=True,
    )
    assert f"{len(bad)} files were left out:" in trained.stderr.decode()


EXAMPLES = {
    command.callback.__name__: command.epilog for command in (*app.registered_commands, *data_app.registered_commands)
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_every_command_runs(name, monkeypatch, capsys, tmp_path, photos, trained):
    """As it is printed, in a folder that has what it speaks of; the training is cut short."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").symlink_to(photos)
    (tmp_path / "data").mkdir()
    if name != "train":
        TIGraNet(**trained.config | {"image_size": 28}).save_pretrained("model")
    monkeypatch.setattr("tigranet.data.sources.download.fetch_mnist", lambda *_: [])
    example = shlex.split(EXAMPLES[name].removeprefix("Example: tigranet "))
    quick = {
        "train": ["--epochs", "1"],
        "report": ["--no-cnn", "--images", "10"],
        "bench": ["--batch", "2", "--json"],
        "reproduce": ["--epochs", "1"],
        "figures": ["--epochs", "1"],
        "angles": ["--images", "5", "--by", "45"],
    }
    code, _, err = tigranet(monkeypatch, capsys, *example, *quick.get(name, []))
    assert code in (0, None), err


def test_a_table_is_written_of_what_is_there(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tigranet.reproduction.reproduce._measure", lambda *_: pytest.fail("measured"))
    command = ("reproduce", "all", "--render-only", "-o", str(tmp_path))
    code, _, err = tigranet(monkeypatch, capsys, *command)
    assert code == 1
    assert "nothing of table2 was measured in" in err
    for name in ("table4", "oriented"):
        (tmp_path / f"{name}.jsonl").touch()
    code, out, err = tigranet(monkeypatch, capsys, *command)
    assert code in (0, None), err
    assert out.count("# ") == 2
    assert "not measured" in out
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["oriented.md", "table4.md"]


def test_few_images_are_drawn_as_a_curve_beside_the_table(monkeypatch, capsys, tmp_path):
    command = ("reproduce", "few", "--quick", "--epochs", "1", "--method", "ConvNet, 50 images", "-o", str(tmp_path))
    code, out, err = tigranet(monkeypatch, capsys, *command)
    assert code in (0, None), err
    assert "| mnist-rot-mini | 50 | ConvNet |" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "few-quick.csv", "few-quick.jsonl", "few-quick.md", "few-quick.png", "few-quick.svg",
    ]  # fmt: skip
    (tmp_path / "few-quick.png").unlink()
    tigranet(monkeypatch, capsys, "reproduce", "few", "--quick", "--epochs", "1", "--render-only", "-o", str(tmp_path))
    assert (tmp_path / "few-quick.png").exists()


def test_runs_that_diverge_are_named_at_the_end(monkeypatch, capsys, tmp_path):
    diverge = Mock(side_effect=training.Diverged("the loss became nan in epoch 1"))
    monkeypatch.setattr("tigranet.reproduction.reproduce._measure", diverge)
    command = ("reproduce", "all", "--quick", "--method", "GroupCNN", "-o", str(tmp_path))
    code, out, err = tigranet(monkeypatch, capsys, *command)
    assert code == 1
    assert out.count("# ") == 4  # all tables that have such rows are written
    assert (
        "tigranet: 14 of the runs diverged, and are in no table:\n  table2, mnist-012, seed 0: GroupCNN (C8)\n" in err
    )
    assert "\n  few, mnist-rot-mini, seed 0: GroupCNN (C4), 50 images\n" in err


def test_the_choices_of_the_command_are_those_of_training():
    """They are written twice, because training is slow to load, and PyTorch too."""
    assert cli.Boundary == grid.Boundary
    assert (cli.Schedule, cli.Keep) == (recipe.Schedule, recipe.Keep)
    assert (cli.Accelerator, cli.Precision) == (hardware.Accelerator, hardware.Precision)
    assert cli.Log == training.Log


def test_every_command_has_an_example():
    assert all(example and example.startswith("Example: tigranet ") for example in EXAMPLES.values())


def test_parquet_and_features(monkeypatch, capsys, tmp_path, photos):
    import pyarrow.parquet as pq

    net = TIGraNet("SC[2,2]-S[2]", 2, image_size=28)
    net.save_pretrained(tmp_path / "m")
    out = tmp_path / "out.parquet"
    tigranet(monkeypatch, capsys, "predict", str(tmp_path / "m"), str(photos), "--parquet", str(out))
    assert pq.read_table(out).column_names == ["path", "label", "probability"]
    tigranet(monkeypatch, capsys, "features", str(tmp_path / "m"), str(photos), "--parquet", str(out))
    table = pq.read_table(out)
    assert (table.num_rows, table.num_columns) == (40, 1 + 2 * 2 * 3)
    path = photos / "digit 1"
    _, out, _ = tigranet(monkeypatch, capsys, "features", str(tmp_path / "m"), str(path), "--json")
    row = json.loads(out.splitlines()[0])
    image = torch.from_numpy(np.asarray(Image.open(row["path"])).copy())[None, None] / 255
    assert row["map1_variance2"] == pytest.approx(net.features(image)[0, -1].item(), rel=1e-4)


@pytest.mark.parametrize("model", ["paper-small", "MC[2,2]-OP[1]-S[2]", "paper-mnist-rot"])
def test_a_preset_layers_or_a_saved_network_is_timed(model, monkeypatch, capsys):
    code, out, err = tigranet(monkeypatch, capsys, "bench", model, "--size", "9", "--batch", "2", "--json")
    assert code in (0, None), err
    told = json.loads(out)
    assert told["size"] == 9
    assert told["architecture"].startswith(("SC", "MC"))
    assert [row["work"] for row in told["milliseconds"]] == ["one image", "2 images", "training step of 2"]


def test_networks_are_turned_side_by_side(monkeypatch, capsys, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3).save_pretrained(tmp_path / "mine")
    command = ("angles", "mnist-012", str(tmp_path / "mine"), "paper-mnist-rot", "MC[2,2]-OP[1]-MC[2,2]-S[2]")
    few = ("--images", "4", "--by", "60", "-o", str(tmp_path / "angles"))
    code, out, err = tigranet(monkeypatch, capsys, *command, *few, "--json")
    assert code in (0, None), err
    told = json.loads(out)
    assert list(told) == ["mine", "paper-mnist-rot", "MC[2,2]-OP[1]-MC[2,2]-S[2]"]
    assert [bool(seen["accuracy"]) for seen in told.values()] == [True, False, False]  # nine classes; learned nothing
    assert told["mine"]["at"] == [0, 60, 90, 120, 180, 240, 270, 300, 360]
    assert all(seen["change"][2] < 1e-4 < seen["change"][1] for seen in told.values())
    rows = (tmp_path / "angles" / "angles.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 9
    code, out, err = tigranet(monkeypatch, capsys, *command[:3], *few)
    assert code in (0, None), err
    assert "angles.png" in out
