"""MLflow is not among the packages of the tests: a stand-in records what it is asked to save."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from export.conftest import calibrated, run, session_of
from tigranet.export.mlflow_model import MODEL_FILE, save_mlflow_model
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx


@pytest.fixture
def saved(monkeypatch):
    """Replace MLflow by modules that record the arguments of ``mlflow.onnx.save_model``."""
    calls = []

    def save_model(model, path, **options):
        Path(path).mkdir()
        Path(path, MODEL_FILE).write_text(str(len(calls)))
        calls.append(SimpleNamespace(model=model, **options))

    for name in ("mlflow", "mlflow.onnx", "mlflow.models", "mlflow.types"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    mlflow, onnx = sys.modules["mlflow"], sys.modules["mlflow.onnx"]
    monkeypatch.setattr(mlflow, "onnx", onnx, raising=False)
    monkeypatch.setattr(onnx, "save_model", save_model, raising=False)
    monkeypatch.setattr(
        sys.modules["mlflow.models"],
        "ModelSignature",
        lambda inputs, outputs: SimpleNamespace(inputs=inputs, outputs=outputs),
        raising=False,
    )
    monkeypatch.setattr(sys.modules["mlflow.types"], "Schema", list, raising=False)
    monkeypatch.setattr(sys.modules["mlflow.types"], "TensorSpec", lambda *spec: spec, raising=False)
    return calls


def test_the_signature_and_the_metadata_are_those_of_the_network(saved, tmp_path):
    interface = model_interface(calibrated("SC[2,2]-S[2]"), preprocess=True)
    model = build_onnx(interface)
    for _ in range(2):  # a model is replaced
        save_mlflow_model(model, interface, tmp_path / "models" / "digits")
    assert (tmp_path / "models" / "digits" / MODEL_FILE).read_text() == "1"
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["digits"]
    assert saved[0].model is model
    assert saved[0].metadata == interface.metadata
    assert saved[0].signature.inputs == [("uint8", (-1, -1, -1, 2), "pixels")]
    assert saved[0].signature.outputs == [("float32", (-1, 3), "probabilities")]


def test_other_files_are_not_replaced(saved, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    interface = model_interface(calibrated("SC[2,2]-S[2]"))
    with pytest.raises(FileExistsError, match="another folder"):
        save_mlflow_model(build_onnx(interface), interface, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_without_mlflow_the_error_names_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    interface = model_interface(calibrated("SC[2,2]-S[2]"))
    with pytest.raises(ImportError, match="pip install mlflow"):
        save_mlflow_model(build_onnx(interface), interface, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed")
@pytest.mark.filterwarnings("default")  # MLflow's own
def test_mlflow_itself_gives_the_answers_of_onnxruntime(tmp_path):
    import mlflow.pyfunc

    interface = model_interface(calibrated("SC[2,2]-S[2]"), preprocess=True)
    model = build_onnx(interface)
    save_mlflow_model(model, interface, tmp_path / "model")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    pixels = torch.randint(0, 256, (3, 9, 12, 2), dtype=torch.uint8)
    answer = loaded.predict({"pixels": pixels.numpy()})["probabilities"]
    assert np.array_equal(answer, run(session_of(model), pixels).numpy())
    assert loaded.metadata.metadata == interface.metadata
