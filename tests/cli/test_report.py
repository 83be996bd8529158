import json
import sys
from dataclasses import replace

import pytest

from tigranet import TIGraNet
from tigranet.workflows.load_data import LoadedData


@pytest.mark.usefixtures("whole_results")
def test_it_writes_a_page_and_its_numbers(tigranet, tmp_path, photos):
    names = ["digit 0", "digit 1", "digit 2"]
    TIGraNet("SC[2,2]-DP[40]-S[2]", 3, image_size=28, class_names=names).save_pretrained(tmp_path / "m")
    command = ("report", tmp_path / "m", photos, "-o", tmp_path / "r")
    code, out, err = tigranet(*command, "--epochs", "1")
    assert code == 0, err
    for words in ("as they are", "turned by 90 degrees", "rotated", "plain CNN", "report.html"):
        assert words in out
    assert "epoch 1/1" in err
    page = (tmp_path / "r" / "report.html").read_text()
    for words in ("15% of each class to validate", "--epochs 1", "digit 2", "epochs 1, batch size 50"):
        assert words in page
    numbers = json.loads((tmp_path / "r" / "report.json").read_text())
    assert len(numbers["subjects"]) == 3
    assert sum(map(sum, numbers["data"]["images"].values())) == 40
    _, out, _ = tigranet(*command, "--no-cnn", "--json", "--images", "3")
    assert json.loads(out)["subjects"][0]["by_angle"]["images"] == 3
    assert "CNN: recipe" not in (tmp_path / "r" / "report.html").read_text()


def test_a_report_that_cannot_be_written_is_refused_at_once(tigranet, monkeypatch, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 5).save_pretrained(tmp_path / "m")
    code, _, err = tigranet("report", tmp_path / "m", "mnist-012", "-o", tmp_path / "r")
    assert code == 1
    for words in ("5 classes", "mnist-012", "3"):
        assert words in err
    (tmp_path / "file").write_text("precious")
    code, _, err = tigranet("report", tmp_path / "m", "mnist-012", "-o", tmp_path / "file")
    assert code == 1
    assert f"got the file '{tmp_path / 'file'}'" in err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = tigranet("report", tmp_path / "m", "mnist-012", "-o", tmp_path / "r")
    assert code == 1
    assert "pip install 'tigranet[figures]'" in err


def test_without_test_images_the_table_is_that_of_the_validation_images(tigranet, monkeypatch, tmp_path, mnist_012):
    images = mnist_012.train.take(list(range(12)))
    data = replace(mnist_012, name="[/]", train=images, validation=images, test=images.take([]))
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    monkeypatch.setattr("tigranet.workflows.saved_run.load_data", lambda *_, **__: LoadedData(data))
    command = ("report", tmp_path / "m", "digits.csv", "-o", tmp_path / "r", "--no-cnn", "--images", "3")
    code, out, err = tigranet(*command)
    assert code == 0, err
    assert "no test images" in out
    assert "accuracy on validation images" in out
    assert "test images" not in out.replace("no test images", "")
    _, out, _ = tigranet(*command, "--json")
    assert json.loads(out)["part"] == "validation"
