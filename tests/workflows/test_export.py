"""The workflow writes what is asked for, measures it, and loses nothing when something is wrong."""

import json

import onnx
import pytest
import torch
from onnx import numpy_helper

from tigranet import TIGraNet
from tigranet.export.mlflow_model import LoggedModel
from tigranet.workflows import export as workflow
from tigranet.workflows.export import export


@pytest.fixture
def model(tmp_path):
    net = TIGraNet("MC[3,1]-S[1]", 3, class_names=["a", "b", "c"], image_size=12)
    net.train()(torch.rand(4, 1, 12, 12))
    net.save_pretrained(tmp_path / "my model")
    return tmp_path / "my model"


def test_an_onnx_file(model, tmp_path):
    result = export(model, tmp_path / "net.onnx")
    assert result.files == (tmp_path / "net.onnx",)
    assert result.num_bytes == result.path.stat().st_size
    assert result.largest_difference < 1e-4
    assert json.loads(result.metadata["class_names"]) == ["a", "b", "c"]
    metadata = {entry.key: entry.value for entry in onnx.load(result.path).metadata_props}
    assert metadata == result.metadata


def test_half_precision_and_preprocessing(model, tmp_path):
    result = export(model, tmp_path / "net.onnx", preprocess=True, precision="float16")
    assert result.largest_difference < 0.01
    assert (result.metadata["precision"], result.metadata["output"]) == ("float16", "probabilities")
    assert all(numpy_helper.to_array(part).size for part in onnx.load(result.path).graph.initializer)


def test_a_model_repository_is_named_after_the_folder_of_the_model(model, tmp_path):
    result = export(model, tmp_path / "repository", format="triton")
    assert (tmp_path / "repository" / "my-model" / "1" / "model.onnx") in result.files
    export(model, tmp_path / "repository", format="triton", name="other")
    assert sorted(path.name for path in (tmp_path / "repository").iterdir()) == ["my-model", "other"]


def test_a_program_of_torch(model, tmp_path, monkeypatch):
    """The program itself is tested elsewhere: tracing one takes seconds."""
    monkeypatch.setattr(workflow, "save_torch_program", lambda interface, path: path.write_text("program"))
    result = export(model, tmp_path / "net.pt2", format="torch")
    assert (result.num_bytes, result.largest_difference) == (7, None)


def test_a_network_in_double_precision_is_exported_in_single_precision(model, tmp_path):
    TIGraNet.from_pretrained(model).double().save_pretrained(model)
    assert export(model, tmp_path / "net.onnx").largest_difference < 1e-4


def test_without_onnxruntime_nothing_is_measured(model, tmp_path, monkeypatch):
    monkeypatch.setattr(workflow, "has_onnxruntime", lambda: False)
    assert export(model, tmp_path / "net.onnx").largest_difference is None


def test_mlflow_has_a_folder_or_a_run(model, tmp_path, monkeypatch):
    result = export(model, tmp_path / "folder", format="mlflow")
    assert (result.logged, len(result.files)) == (None, 5)
    assert result.path == tmp_path / "folder"
    logged = LoggedModel("models:/1", "1", "sqlite:///mlflow.db")
    monkeypatch.setattr(workflow, "require_mlflow", lambda: None)
    monkeypatch.setattr(workflow, "log_mlflow_model", lambda *arguments: calls.append(arguments) or logged)
    calls = []
    result = export(model, format="mlflow", name="digits")
    assert (result.logged, result.path, result.files) == (logged, None, ())
    ((onnx_model, _, metadata, name),) = calls
    assert (metadata, name) == (result.metadata, "digits")
    assert result.num_bytes == len(onnx_model.SerializeToString())


@pytest.mark.parametrize("format", ["onnx", "torch", "triton"])
def test_other_formats_need_an_output(model, format):
    with pytest.raises(ValueError, match=f"{format}.*-o"):
        export(model, format=format)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "pdf"}, ["pdf", "onnx"]),
        ({"precision": "int4"}, ["int4", "float16"]),
        ({"format": "torch", "precision": "float16"}, ["float16", "torch"]),
        ({"format": "triton", "name": "a/b"}, ["a/b", "--name"]),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_a_wrong_option_is_named_and_nothing_is_written(options, words, model, tmp_path):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        export(model, tmp_path / "out", **options)
    assert all(word in str(error.value) for word in words)
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written_is_found_before_the_work(model, tmp_path):
    with pytest.raises(NotADirectoryError, match="no folder"):
        export(model, tmp_path / "missing" / "net.onnx")
    with pytest.raises(IsADirectoryError):
        export(model, tmp_path)
    (tmp_path / "file").write_text("text")
    with pytest.raises(NotADirectoryError):
        export(model, tmp_path / "file", format="triton")
    assert (tmp_path / "file").read_text() == "text"


def test_an_older_file_stays_when_the_export_fails(model, tmp_path, monkeypatch):
    export(model, tmp_path / "net.onnx")
    before = (tmp_path / "net.onnx").read_bytes()

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(workflow, "build_onnx", fail)
    with pytest.raises(MemoryError):
        export(model, tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_bytes() == before
