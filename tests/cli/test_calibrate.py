import json

from tigranet import TIGraNet


def test_it_makes_label_sets_and_the_detection_of_unknown_images_possible(tigranet, tmp_path, photos):
    network = TIGraNet("SC[2,2]-S[2]", 3, image_size=28, class_names=["digit 0", "digit 1", "digit 2"])
    network.save_pretrained(tmp_path)
    code, out, err = tigranet("calibrate", tmp_path, photos)
    assert code == 0
    assert out.startswith(f"{tmp_path}: calibrated on 6 validation images: label sets of coverage up to 0.857")
    assert "it is not known which images" in " ".join(err.split())
    code, out, _ = tigranet("predict", tmp_path, photos, "--coverage", "0.8")
    assert (code, out.splitlines()[0]) == (0, "path,label,probability,labels,novelty")
    plain = tigranet("predict", tmp_path, photos, "--unknown", "off", "--coverage", "0.8").out
    assert plain.splitlines()[0] == "path,label,probability,labels"
    code, out, _ = tigranet("predict", tmp_path, photos, "--unknown", "0.1", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["label"] == "unknown" for row in rows} == {True, False}
    assert all((row["label"] == "unknown") == (row["novelty"] > 1) for row in rows)
    (tmp_path / "unknown.safetensors").write_bytes(b"damaged")
    for options in ((), ("--unknown", "0.9")):
        code, _, err = tigranet("predict", tmp_path, photos, *options)
        assert (code, "tigranet calibrate" in err) == (1, True)


def test_data_with_other_classes_are_refused(tigranet, tmp_path, photos):
    TIGraNet("SC[2,2]-S[2]", 2, image_size=28).save_pretrained(tmp_path)
    code, _, err = tigranet("calibrate", tmp_path, photos)
    assert (code, "other data" in err) == (1, True)
