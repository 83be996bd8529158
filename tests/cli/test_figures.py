from tigranet import TIGraNet


def test_it_prints_the_files_that_it_drew(tigranet, tmp_path):
    TIGraNet("SC[2,2]-DP[40]-S[2]", 3, image_size=28).save_pretrained(tmp_path / "m")
    code, out, err = tigranet("figures", tmp_path / "m", "mnist-012", "-o", tmp_path / "f")
    assert code == 0, err
    assert sorted(out.split()) == sorted(map(str, (tmp_path / "f").iterdir()))
    assert str(tmp_path / "f" / "filters.png") in out
