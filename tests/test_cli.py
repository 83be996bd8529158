import json
import subprocess
import sys

import pytest

from tigranet import TIGraNet
from tigranet.cli import main


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
        (("train", "mnist-12"), "no data set is called 'mnist-12': did you mean 'mnist-012'?"),
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
    monkeypatch.setattr("tigranet.experiments.runner.run", lambda *_: [][0])
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
    with pytest.raises(ValueError, match="no data set is called 'cats'"):
        main()


def test_help_shows_an_example():
    code = "import sys; sys.argv = ['tigranet', 'train', '--help']; from tigranet import cli; cli.main()"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tigranet train mnist-012 -o model/" in finished.stdout
