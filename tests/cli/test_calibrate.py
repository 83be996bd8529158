from tigranet import TIGraNet


def test_it_makes_label_sets_possible(tigranet, tmp_path, photos):
    network = TIGraNet("SC[2,2]-S[2]", 3, image_size=28, class_names=["digit 0", "digit 1", "digit 2"])
    network.save_pretrained(tmp_path)
    code, out, err = tigranet("calibrate", tmp_path, photos)
    assert code == 0
    assert out.startswith(f"{tmp_path}: calibrated on 6 validation images: label sets of coverage up to 0.857")
    assert "it is not known which images" in " ".join(err.split())
    code, out, _ = tigranet("predict", tmp_path, photos, "--coverage", "0.8")
    assert (code, out.splitlines()[0]) == (0, "path,label,probability,labels")


def test_data_with_other_classes_are_refused(tigranet, tmp_path, photos):
    TIGraNet("SC[2,2]-S[2]", 2, image_size=28).save_pretrained(tmp_path)
    code, _, err = tigranet("calibrate", tmp_path, photos)
    assert (code, "other data" in err) == (1, True)
