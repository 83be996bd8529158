import json

from images import fill
from tigranet import TIGraNet
from tigranet.data import load_user_data
from tigranet.data.leakage import content_hash


def test_networks_are_compared_side_by_side(tigranet, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3).save_pretrained(tmp_path / "mine")
    command = ("angles", "mnist-012", tmp_path / "mine", "paper-mnist-rot", "MC[2,2]-OP[1]-MC[2,2]-S[2]")
    options = ("--images", "4", "--by", "60", "-o", tmp_path / "angles")
    code, out, err = tigranet(*command, *options, "--json")
    assert code == 0, err
    curves = json.loads(out)
    assert list(curves) == ["mine", "paper-mnist-rot", "MC[2,2]-OP[1]-MC[2,2]-S[2]"]
    # the second network has nine classes, and the third is not trained
    assert [bool(curve["accuracy"]) for curve in curves.values()] == [True, False, False]
    assert curves["mine"]["at"] == [0, 60, 90, 120, 180, 240, 270, 300, 360]
    assert all(curve["change"][2] < 1e-4 < curve["change"][1] for curve in curves.values())
    rows = (tmp_path / "angles" / "angles.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 9
    code, out, err = tigranet(*command[:3], *options)
    assert code == 0, err
    assert "angles.png" in out


def test_networks_with_different_channels_are_not_compared(tigranet, tmp_path):
    TIGraNet("SC[2,2]-S[2]", 3, in_maps=3, image_size=28).save_pretrained(tmp_path / "m")
    code, _, err = tigranet("angles", "mnist-012", "paper-small", tmp_path / "m", "-o", tmp_path / "angles")
    assert code == 1
    for words in (str(tmp_path / "m"), "3 channels", "mnist-012", "1"):
        assert words in err


def test_training_images_of_the_second_network_are_left_out_with_a_count(tigranet, tmp_path):
    small = fill(tmp_path / "small", {"a": 12, "b": 12, "c": 12})
    for seed in ("1", "2"):
        options = ("--architecture", "SC[2,2]-S[2]", "--epochs", "1", "--seed", seed, "-o", tmp_path / f"A{seed}")
        assert tigranet("train", small, *options).code == 0
    command = ("angles", small, tmp_path / "A1", tmp_path / "A2", "--by", "180", "-o", tmp_path / "angles")
    code, out, err = tigranet(*command)
    assert code == 0, err
    training_hashes = set(json.loads((tmp_path / "A2" / "training.json").read_text())["seen"].split())
    test, _ = load_user_data(small, seed=1)
    leaked = sum(content_hash(image) in training_hashes for image in test.test.images)
    assert 0 < leaked < 6
    assert f"{leaked} of 6 test images of small" in " ".join(err.split())
    assert f"{6 - leaked} images of small" in out
