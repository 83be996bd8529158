import json
import re
import shutil

import torch
from PIL import Image

from tigranet import TIGraNet
from tigranet.data import load_user_data
from tigranet.data.leakage import content_hash

SMALL = ("--architecture", "SC[2,2]-S[2]", "--epochs", "1")


def test_it_shows_the_drop(tigranet, tmp_path, trained):
    trained.save_pretrained(tmp_path)
    _, out, _ = tigranet("evaluate", tmp_path, "mnist-012")
    for words in ("100 test images of mnist-012", "upright", "rotated", "shifted by up to 3 pixels", "drop"):
        assert words in out
    _, out, _ = tigranet("evaluate", tmp_path, "mnist-012", "--json")
    assert json.loads(out)["images"] == 100


def test_it_shows_the_coverage_and_size_of_label_sets(tigranet, tmp_path, trained):
    trained.save_pretrained(tmp_path)
    code, out, _ = tigranet("calibrate", tmp_path, "mnist-012")
    assert (code, "calibrated on 100 validation images: label sets of coverage up to 0.99" in out) == (0, True)
    _, out, _ = tigranet("evaluate", tmp_path, "mnist-012", "--coverage", "0.8")
    for words in ("label sets of coverage 0.8", "calibrated on 100 validation images", "mean size", "single labels"):
        assert words in out
    _, out, _ = tigranet("evaluate", tmp_path, "mnist-012", "--coverage", "0.8", "--json")
    sets = json.loads(out)["label_sets"]
    assert (sets["coverage"], sets["images"]) == (0.8, 100)
    assert sets["by_rotation"]["upright"] == sets["by_rotation"]["turned by 90 degrees"]
    assert sets["by_rotation"]["upright"]["coverage"] > 68  # 3 standard deviations of calibration and test together
    code, _, err = tigranet("evaluate", tmp_path, "mnist-012", "--coverage", "0")
    assert (code, "between 0 and 1" in err) == (1, True)


def test_images_without_a_finite_answer_are_wrong_and_counted(tigranet, tmp_path):
    """The numbers of this network overflow for every image that is not black."""
    net = TIGraNet("SC[2,2]-S[2]", 3, image_size=28)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1e30)
    net.save_pretrained(tmp_path)
    code, out, err = tigranet("evaluate", tmp_path, "mnist-012", "--json")
    assert (code, json.loads(out)["upright"], json.loads(out)["unanswered"]) == (0, 0, 100)
    assert "no finite answer, counted as wrong: 100" in err


def test_a_model_that_does_not_exist_is_named(tigranet, tmp_path):
    code, _, err = tigranet("evaluate", tmp_path / "none", "mnist-012")
    assert code == 1
    assert str(tmp_path / "none") in err


def test_a_network_with_other_classes_is_not_measured(tigranet, tmp_path, photos):
    TIGraNet("SC[2,2]-S[2]", 3, image_size=28, class_names=["a", "b", "c"]).save_pretrained(tmp_path / "m")
    code, _, err = tigranet("evaluate", tmp_path / "m", photos)
    assert code == 1
    for words in ("a, b, c", photos.name, "digit 0, digit 1, digit 2", "other data"):
        assert words in err


def test_training_images_are_left_out_when_the_folder_has_changed(tigranet, tmp_path, photos):
    shutil.copytree(photos, tmp_path / "own")
    tigranet("train", tmp_path / "own", *SMALL, "-o", tmp_path / "m")
    command = ("evaluate", tmp_path / "m", tmp_path / "own")
    assert "training images" not in " ".join(tigranet(*command).err.split())
    record = json.loads((tmp_path / "m" / "training.json").read_text())
    training_hashes = set(record["seen"].split())
    Image.new("L", (28, 28), 77).save(tmp_path / "own" / "digit 0" / "another.png")
    code, out, err = tigranet(*command, "--json")
    assert code == 0, err
    notice = re.search(r"(\d+) of (\d+) test images", " ".join(err.split()))
    data, _ = load_user_data(tmp_path / "own", 0, 28)
    leaked = [content_hash(image) in training_hashes for image in data.test.images]
    assert [int(number) for number in notice.groups()] == [sum(leaked), len(leaked)]
    assert 0 < sum(leaked) < len(leaked)
    assert json.loads(out)["images"] == len(leaked) - sum(leaked)
    assert json.loads(out)["excluded_images"] == sum(leaked)


def test_other_images_with_the_same_file_names_are_not_left_out(tigranet, tmp_path, photos):
    shutil.copytree(photos, tmp_path / "monday" / "own")
    tigranet("train", tmp_path / "monday" / "own", *SMALL, "-o", tmp_path / "m")
    shutil.copytree(photos, tmp_path / "tuesday" / "own")
    for file in (tmp_path / "tuesday").rglob("[0-9]*.png"):
        with Image.open(file) as image:
            image.convert("L").point(lambda value: 255 - value).save(file)
    code, _, err = tigranet("evaluate", tmp_path / "m", tmp_path / "tuesday" / "own")
    assert code == 0, err
    assert "training images" not in " ".join(err.split())
