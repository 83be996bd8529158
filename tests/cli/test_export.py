import json

import pytest

from tigranet import TIGraNet
from tigranet.export.mlflow_model import LoggedModel
from tigranet.workflows import export as workflow


@pytest.fixture
def model(tmp_path):
    TIGraNet("SC[2,2]-S[2]", 2, image_size=12).save_pretrained(tmp_path / "m")
    return tmp_path / "m"


def test_it_prints_the_file_its_size_and_the_difference(tigranet, model, tmp_path):
    code, out, err = tigranet("export", model, "-o", tmp_path / "net.onnx")
    assert code == 0, err
    path, size, difference = out.splitlines()
    assert path == str(tmp_path / "net.onnx")
    assert size.endswith("MB")
    assert float(difference.split(": ")[1]) < 1e-4


def test_json_describes_the_exported_network(tigranet, model, tmp_path):
    options = ["--format", "triton", "--preprocess", "--precision", "float16", "--name", "digits", "--json"]
    code, out, err = tigranet("export", model, "-o", tmp_path / "repository", *options)
    assert code == 0, err
    result = json.loads(out)
    assert result["metadata"]["value_range"] == "[0, 255]"
    assert result["bytes"] > 1000
    assert str(tmp_path / "repository" / "digits" / "config.pbtxt") in result["files"]


def test_an_unknown_model_is_named_in_one_line(tigranet, tmp_path):
    code, out, err = tigranet("export", tmp_path / "none", "-o", tmp_path / "net.onnx")
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "none" in err


def test_a_model_that_is_logged_says_how_it_is_loaded(tigranet, model, monkeypatch):
    logged = LoggedModel("models:/m-1", "1a", "sqlite:///mlflow.db")
    monkeypatch.setattr(workflow, "require_mlflow", lambda: None)
    monkeypatch.setattr(workflow, "log_mlflow_model", lambda *_: logged)
    code, out, err = tigranet("export", model, "--format", "mlflow")
    assert code == 0, err
    assert out.splitlines()[:2] == [
        "logged to run 1a at sqlite:///mlflow.db",
        "load it with mlflow.pyfunc.load_model('models:/m-1')",
    ]
    result = json.loads(tigranet("export", model, "--format", "mlflow", "--json").out)
    assert result["path"] is None
    assert result["mlflow"] == {"uri": "models:/m-1", "run_id": "1a", "tracking_uri": "sqlite:///mlflow.db"}
