import json


def test_list_shows_which_data_sets_are_there(tigranet, tmp_path):
    _, out, _ = tigranet("data", "list", "--data-dir", tmp_path, "--json")
    there = {name: entry["there"] for name, entry in json.loads(out).items()}
    assert there["mnist-012"]
    assert not there["mnist-rot"]
    _, out, _ = tigranet("data", "list", "--data-dir", tmp_path)
    assert "mnist-rot-mini" in out
    assert "eth80" in out


def test_check_finds_bad_files(tigranet, tmp_path):
    code, out, _ = tigranet("data", "check", "--data-dir", tmp_path)
    assert code == 0
    assert "not there" in out
    (tmp_path / "mnist.npz").write_bytes(b"PK nothing of the kind")
    code, out, err = tigranet("data", "check", "--data-dir", tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["MNIST"].startswith("bad: ")
    assert "delete those files" in err


def test_fetch_prints_the_files(tigranet, monkeypatch, tmp_path):
    monkeypatch.setattr("tigranet.data.sources.download.fetch_mnist", lambda folder, _: [folder / "a.gz"])
    assert tigranet("data", "fetch", "--data-dir", tmp_path).out.split() == [str(tmp_path / "a.gz")]
