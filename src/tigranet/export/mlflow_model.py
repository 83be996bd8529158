"""Networks as models of MLflow: as a folder, and logged to a run."""

import inspect
import json
import platform
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tigranet.abandoned_files import STAGING_PREFIX
from tigranet.export.model_interface import ModelInterface

if TYPE_CHECKING:
    import onnx

MODEL_FILE = "MLmodel"
"""File that makes a folder a model of MLflow."""
REQUIREMENTS = ("mlflow", "onnx", "onnxruntime", "numpy")
"""The packages that a model needs where it is used."""
PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
"""Where onnxruntime computes, the first choice first. These are the defaults of MLflow."""
LOGGED_NAME = "model"
"""Name of the model within its run."""


@dataclass(frozen=True)
class LoggedModel:
    """A model in a run of MLflow."""

    uri: str
    """Address for ``mlflow.pyfunc.load_model``."""
    run_id: str
    """Identifier of the run."""
    tracking_uri: str
    """Where MLflow keeps the run."""


def require_mlflow() -> Any:
    """Import MLflow.

    Returns:
        The module ``mlflow``.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import mlflow
        import mlflow.onnx
    except ModuleNotFoundError:
        raise ImportError(
            "logging to a run of MLflow needs mlflow, which is not installed: pip install mlflow, or write a folder "
            "with -o, which does not need it"
        ) from None
    return mlflow


def log_mlflow_model(
    model: "onnx.ModelProto", interface: ModelInterface, metadata: Mapping[str, str], registered_name: str | None = None
) -> LoggedModel:
    """Log a network to a run of MLflow as a model that ``mlflow.pyfunc.load_model`` reads.

    MLflow decides where the run is: the tracking location, the experiment and the run that the user has set, for
    example with MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and MLFLOW_RUN_ID. If a run is active in this process, the
    model is logged to it; otherwise a new run is started and ended.

    Args:
        model: The ONNX model.
        interface: The exported version of the network.
        metadata: What the model says about the network.
        registered_name: Name to register the model by. None does not register it.

    Returns:
        Where the model is.

    Raises:
        ImportError: If MLflow is not installed.
        OSError: If MLflow refuses the model, or cannot reach the tracking location.
    """
    mlflow = require_mlflow()
    from mlflow.exceptions import MlflowException
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    tensors = [
        TensorSpec(torch.empty(0, dtype=kind).numpy().dtype, shape, name) for kind, shape, name in _tensors(interface)
    ]
    # Before MLflow 3, a model has a path among the artifacts of its run instead of a name.
    parameters = inspect.signature(mlflow.onnx.log_model).parameters
    place = {"name" if "name" in parameters else "artifact_path": LOGGED_NAME}
    tracking_uri = mlflow.get_tracking_uri()
    try:
        active = mlflow.active_run()
        with mlflow.start_run() if active is None else nullcontext(active) as run:
            logged = mlflow.onnx.log_model(
                model,
                **place,
                registered_model_name=registered_name,
                signature=ModelSignature(inputs=Schema(tensors[:1]), outputs=Schema(tensors[1:])),
                metadata=dict(metadata),
                save_as_external_data=False,
                pip_requirements=list(REQUIREMENTS),
            )
    except MlflowException as error:
        reason = " ".join(str(error).split())
        raise OSError(f"MLflow cannot log the model to '{tracking_uri}': {reason}") from None
    return LoggedModel(logged.model_uri, run.info.run_id, tracking_uri)


def write_mlflow_model(content: bytes, interface: ModelInterface, metadata: Mapping[str, str], folder: Path) -> None:
    """Write a network as the folder of an MLflow model, which ``mlflow.pyfunc.load_model`` reads.

    MLflow need not be installed. The files are those of ``mlflow.onnx.save_model``: the ONNX file, which MLflow runs
    with onnxruntime, a description with the types and shapes of input and output, and the packages that are needed.
    Nothing is pickled.

    Args:
        content: The ONNX file.
        interface: The exported version of the network.
        metadata: What the model says about the network.
        folder: The folder of the model. An MLflow model that is there is replaced once the new one is complete.

    Raises:
        FileExistsError: If the folder has other content than an MLflow model.
    """
    if folder.exists() and not (folder / MODEL_FILE).is_file() and any(folder.iterdir()):
        raise FileExistsError(f"'{folder}' is not empty and not an MLflow model: give another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=STAGING_PREFIX) as staging:
        complete = Path(staging) / "model"
        complete.mkdir()
        (complete / "model.onnx").write_bytes(content)
        for name, text in _descriptions(interface, metadata).items():
            (complete / name).write_text(text, encoding="utf-8")
        if folder.exists():
            folder.rename(Path(staging) / "older")
        complete.rename(folder)


def _tensors(interface: ModelInterface) -> list[tuple[torch.dtype, tuple[int, ...], str]]:
    """Return type, shape and name of the input and of the output; -1 stands for any length."""
    shape = tuple(length if isinstance(length, int) else -1 for length in interface.shape)
    output = (torch.float32, (-1, interface.num_classes), interface.output_name)
    return [(interface.dtype, shape, interface.input_name), output]


def _descriptions(interface: ModelInterface, metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the text files of a model by name. JSON strings of ASCII characters are also strings in YAML."""
    import onnx

    def schema(kind: torch.dtype, shape: tuple[int, ...], name: str) -> str:
        spec = {"dtype": str(torch.empty(0, dtype=kind).numpy().dtype), "shape": shape}
        return json.dumps(json.dumps([{"name": name, "type": "tensor", "tensor-spec": spec}]))

    inputs, outputs = (schema(*tensor) for tensor in _tensors(interface))
    python = platform.python_version()
    lines = [
        "flavors:",
        "  onnx:",
        "    code: null",
        "    data: model.onnx",
        "    onnx_session_options: null",
        f"    onnx_version: {onnx.__version__}",
        f"    providers: [{', '.join(PROVIDERS)}]",
        "  python_function:",
        "    data: model.onnx",
        "    env: {conda: conda.yaml, virtualenv: python_env.yaml}",
        "    loader_module: mlflow.onnx",
        f"    python_version: {python}",
        "metadata:",
        *(f"  {name}: {json.dumps(value)}" for name, value in metadata.items()),
        "signature:",
        f"  inputs: {inputs}",
        f"  outputs: {outputs}",
        "  params: null",
    ]
    conda = ["name: mlflow-env", "channels: [conda-forge]", "dependencies:", f"- python={python}", "- pip", "- pip:"]
    conda += [f"  - {name}" for name in REQUIREMENTS]
    environment = [
        f"python: {python}",
        "build_dependencies: [pip, setuptools, wheel]",
        "dependencies: [-r requirements.txt]",
    ]
    files = {MODEL_FILE: lines, "conda.yaml": conda, "python_env.yaml": environment, "requirements.txt": REQUIREMENTS}
    return {name: "".join(f"{line}\n" for line in content) for name, content in files.items()}
