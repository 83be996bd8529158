"""MLflow is not among the packages of the tests: a stand-in has the functions that are used, and their arguments."""

import inspect
import json
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
import yaml

from export.conftest import calibrated, run, session_of
from tigranet.export.mlflow_model import MODEL_FILE, LoggedModel, log_mlflow_model, write_mlflow_model
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx

METADATA = {"class_names": json.dumps(["ä", "=1"]), "output": "probabilities"}


@pytest.fixture(scope="module")
def interface():
    return model_interface(calibrated("SC[2,2]-S[2]"), preprocess=True)


@pytest.fixture(scope="module")
def onnx_model(interface):
    return build_onnx(interface)


class MlflowError(Exception):
    """Stands for ``mlflow.exceptions.MlflowException``."""


class Mlflow(ModuleType):
    """A stand-in for MLflow 3 that keeps runs in memory."""

    def __init__(self):
        super().__init__("mlflow")
        self.runs, self.active, self.ended = {}, None, []
        self.onnx = SimpleNamespace(log_model=self._log_model)

    def get_tracking_uri(self):
        return "sqlite:///mlflow.db"

    def active_run(self):
        return self.active

    @contextmanager
    def start_run(self):
        assert self.active is None  # as in MLflow, where a second run is an error
        identifier = f"run{len(self.runs)}"
        self.active, self.runs[identifier] = SimpleNamespace(info=SimpleNamespace(run_id=identifier)), []
        try:
            yield self.active
        finally:
            self.active = None
            self.ended.append(identifier)

    def _log_model(
        self,
        onnx_model,
        artifact_path=None,
        registered_model_name=None,
        signature=None,
        pip_requirements=None,
        metadata=None,
        save_as_external_data=True,
        name=None,
    ):
        if registered_model_name == "a/b":
            raise MlflowError("Invalid name:\n'a/b'")
        call = SimpleNamespace(**{key: value for key, value in locals().items() if key != "self"})
        self.runs[self.active.info.run_id].append(call)
        return SimpleNamespace(model_uri=f"models:/{self.active.info.run_id}")


def tensor_spec(type, shape, name=None):
    """Check the arguments as MLflow does."""
    assert isinstance(type, np.dtype)
    assert isinstance(shape, tuple)
    return (str(type), shape, name)


@pytest.fixture
def mlflow(monkeypatch):
    stand_in = Mlflow()
    parts = {
        "mlflow.onnx": {"log_model": stand_in._log_model},
        "mlflow.exceptions": {"MlflowException": MlflowError},
        "mlflow.models": {"ModelSignature": lambda inputs=None, outputs=None: (inputs, outputs)},
        "mlflow.types": {"Schema": list, "TensorSpec": tensor_spec},
    }
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return stand_in


def test_the_model_is_logged_to_a_new_run(mlflow, interface, onnx_model):
    logged = log_mlflow_model(onnx_model, interface, METADATA)
    assert logged == LoggedModel("models:/run0", "run0", "sqlite:///mlflow.db")
    assert mlflow.ended == ["run0"]
    ((call,),) = mlflow.runs.values()
    assert call.onnx_model is onnx_model
    assert (call.name, call.artifact_path, call.registered_model_name) == ("model", None, None)
    assert call.metadata == METADATA
    assert call.signature == ([("uint8", (-1, -1, -1, 2), "pixels")], [("float32", (-1, 3), "probabilities")])
    assert "onnxruntime" in call.pip_requirements
    assert not call.save_as_external_data


def test_an_active_run_is_used_and_goes_on(mlflow, interface, onnx_model):
    with mlflow.start_run() as active:
        assert log_mlflow_model(onnx_model, interface, METADATA, "digits").run_id == active.info.run_id
        assert mlflow.active is active
    ((call,),) = mlflow.runs.values()
    assert call.registered_model_name == "digits"


def test_before_version_3_the_model_has_a_path(mlflow, interface, onnx_model, monkeypatch):
    def log_model(onnx_model, artifact_path, **options):
        return mlflow._log_model(onnx_model, artifact_path, **options)

    monkeypatch.setattr(mlflow.onnx, "log_model", log_model)
    assert "name" not in inspect.signature(log_model).parameters
    log_mlflow_model(onnx_model, interface, METADATA)
    ((call,),) = mlflow.runs.values()
    assert (call.name, call.artifact_path) == (None, "model")


def test_what_mlflow_refuses_is_an_error_in_one_line(mlflow, interface, onnx_model):
    with pytest.raises(OSError, match=r"'sqlite:///mlflow\.db': Invalid name: 'a/b'$"):
        log_mlflow_model(onnx_model, interface, METADATA, "a/b")
    assert mlflow.ended == ["run0"]


def test_without_mlflow_the_error_names_the_remedies(monkeypatch, interface, onnx_model):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install mlflow.*-o"):
        log_mlflow_model(onnx_model, interface, METADATA)


def test_a_folder_is_written_without_mlflow(interface, onnx_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    folder = tmp_path / "models" / "digits"
    for metadata in ({}, METADATA):  # a model is replaced
        write_mlflow_model(onnx_model.SerializeToString(), interface, metadata, folder)
    assert [path.name for path in folder.parent.iterdir()] == ["digits"]
    assert {path.name for path in folder.iterdir()} == {
        MODEL_FILE,
        "conda.yaml",
        "model.onnx",
        "python_env.yaml",
        "requirements.txt",
    }
    assert (folder / "model.onnx").read_bytes() == onnx_model.SerializeToString()
    about = yaml.safe_load((folder / MODEL_FILE).read_text())
    assert about["metadata"] == METADATA
    assert about["flavors"]["python_function"]["loader_module"] == "mlflow.onnx"
    assert about["flavors"]["onnx"]["data"] == about["flavors"]["python_function"]["data"] == "model.onnx"
    (pixels,), (probabilities,) = (json.loads(about["signature"][key]) for key in ("inputs", "outputs"))
    assert pixels["tensor-spec"] == {"dtype": "uint8", "shape": [-1, -1, -1, 2]}
    assert probabilities == {
        "name": "probabilities",
        "type": "tensor",
        "tensor-spec": {"dtype": "float32", "shape": [-1, 3]},
    }
    environment = yaml.safe_load((folder / "python_env.yaml").read_text())
    assert environment["dependencies"] == ["-r requirements.txt"]
    conda = yaml.safe_load((folder / "conda.yaml").read_text())
    assert conda["dependencies"][-1]["pip"] == (folder / "requirements.txt").read_text().split()


def test_other_files_are_not_replaced(interface, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="another folder"):
        write_mlflow_model(b"", interface, METADATA, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed")
@pytest.mark.filterwarnings("default")  # MLflow's own
def test_mlflow_itself_gives_the_answers_of_onnxruntime(interface, onnx_model, tmp_path, monkeypatch):
    import mlflow.pyfunc

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    write_mlflow_model(onnx_model.SerializeToString(), interface, METADATA, tmp_path / "model")
    logged = log_mlflow_model(onnx_model, interface, METADATA)
    assert mlflow.get_run(logged.run_id).info.status == "FINISHED"
    pixels = torch.randint(0, 256, (3, 9, 12, 2), dtype=torch.uint8)
    for address in (str(tmp_path / "model"), logged.uri):
        loaded = mlflow.pyfunc.load_model(address)
        answer = loaded.predict({"pixels": pixels.numpy()})["probabilities"]
        assert np.array_equal(answer, run(session_of(onnx_model), pixels).numpy())
        assert loaded.metadata.metadata == METADATA
