import json

from tigranet import TIGraNet


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
