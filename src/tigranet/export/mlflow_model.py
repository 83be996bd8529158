"""Networks as models of MLflow."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tigranet.abandoned_files import STAGING_PREFIX
from tigranet.export.model_interface import ModelInterface

if TYPE_CHECKING:
    import onnx

MODEL_FILE = "MLmodel"
"""File that makes a folder a model of MLflow."""


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
            "an MLflow model needs mlflow, which is not installed: pip install mlflow, or mlflow-skinny for the "
            "command alone"
        ) from None
    return mlflow


def save_mlflow_model(model: "onnx.ModelProto", interface: ModelInterface, folder: Path) -> None:
    """Save a network as an MLflow model that ``mlflow.pyfunc.load_model`` reads, without the tigranet package.

    The model has a signature with the types and shapes of input and output. Nothing is pickled: the model is the ONNX
    file, which MLflow runs with onnxruntime.

    Args:
        model: The ONNX model.
        interface: The exported version of the network.
        folder: The folder of the model. An MLflow model that is there is replaced once the new one is complete.

    Raises:
        ImportError: If MLflow is not installed.
        FileExistsError: If the folder has other content than an MLflow model.
    """
    mlflow = require_mlflow()
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    if folder.exists() and not (folder / MODEL_FILE).is_file() and any(folder.iterdir()):
        raise FileExistsError(f"'{folder}' is not empty and not an MLflow model: give another folder")
    kind = torch.empty(0, dtype=interface.dtype).numpy().dtype
    shape = tuple(length if isinstance(length, int) else -1 for length in interface.shape)
    result = TensorSpec(torch.empty(0).numpy().dtype, (-1, interface.num_classes), interface.output_name)
    signature = ModelSignature(Schema([TensorSpec(kind, shape, interface.input_name)]), Schema([result]))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=STAGING_PREFIX) as staging:
        complete = Path(staging) / "model"
        mlflow.onnx.save_model(
            model,
            str(complete),
            signature=signature,
            metadata=interface.metadata,
            save_as_external_data=False,
            pip_requirements=["mlflow", "onnx", "onnxruntime", "numpy"],
        )
        if folder.exists():
            folder.rename(Path(staging) / "older")
        complete.rename(folder)
