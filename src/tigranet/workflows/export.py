"""Export a saved network to a format that other programs run."""

import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console

from tigranet.atomic_files import atomic_binary_write, check_writable
from tigranet.choices import ExportFormat, ExportPrecision
from tigranet.export.comparison import has_onnxruntime, largest_difference
from tigranet.export.mlflow_model import LoggedModel, log_mlflow_model, require_mlflow, write_mlflow_model
from tigranet.export.model_interface import model_interface
from tigranet.export.onnx_file import build_onnx, require_onnx
from tigranet.export.torch_program import save_torch_program
from tigranet.export.triton_repository import write_triton_repository
from tigranet.model import TIGraNet
from tigranet.workflows.output_folder import check_output_folder


@dataclass(frozen=True)
class ExportResult:
    """The exported network."""

    path: Path | None
    """The file or folder that was asked for; None if the model was logged to a run of MLflow."""
    files: tuple[Path, ...]
    """The files that were written."""
    num_bytes: int
    """Size of the files together, or of the ONNX file that was logged."""
    metadata: dict[str, str]
    """What the exported file says about the network."""
    largest_difference: float | None
    """Largest difference of a probability between the ONNX file in onnxruntime and the network in PyTorch, on example
    images of two sizes. None if it was not measured: onnxruntime is not installed, or the format is ``torch``."""
    logged: LoggedModel | None = None
    """The run of MLflow that the model was logged to, if no folder was given."""


def export(
    model: str | Path,
    output: str | Path | None = None,
    *,
    format: ExportFormat = "onnx",
    preprocess: bool = False,
    precision: ExportPrecision = "float32",
    name: str | None = None,
    console: Console | None = None,
) -> ExportResult:
    """Export a network, for any batch size, height and width.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        output: The file to write for the formats ``onnx`` and ``torch``, the folder of the model repository for
            ``triton``, and the folder of the model for ``mlflow``. None is possible for ``mlflow`` only: the model is
            logged to a run, at the tracking location that the user has set, see
            :func:`~tigranet.export.mlflow_model.log_mlflow_model`. A folder is written without MLflow.
        format: ``onnx`` for an ONNX file, ``torch`` for a program of ``torch.export``, ``triton`` for a model
            repository, ``mlflow`` for an MLflow model.
        preprocess: Whether the exported network reads pixels from 0 to 255 (batch, height, width, channels), converts
            them to grey if the network reads grey images, and returns probabilities instead of logits.
        precision: ``float16`` stores the weights of an ONNX file in half precision, which halves its size.
        name: Name of the model in a model repository; the default is the name of the model's folder. For a run of
            MLflow, the name to register the model by; the default does not register it.
        console: Where to show progress.

    Returns:
        The files, and how much the exported network differs from the network in PyTorch.

    Raises:
        FileNotFoundError: If the model does not exist.
        ImportError: If a package that the format needs is not installed.
        ValueError: If an option has an invalid value.
        OSError: If the output cannot be written, or if MLflow does not accept the model.
    """
    _check_choices(format, precision)
    output = None if output is None else Path(output)
    if output is None:
        if format != "mlflow":
            raise ValueError(f"expected an output for the format {format}: give a file or folder with -o")
        require_mlflow()
    elif format in ("onnx", "torch"):
        check_writable(output)
    else:
        check_output_folder(output, "model repository" if format == "triton" else "model")
    if format != "torch":
        require_onnx()
    network = TIGraNet.from_pretrained(model).float()
    interface = model_interface(network, preprocess)
    with console.status("exporting") if console else nullcontext():
        if format == "torch":
            assert output is not None
            save_torch_program(interface, output)
            return ExportResult(output, (output,), output.stat().st_size, interface.metadata, None)
        onnx_model = build_onnx(interface, precision)
        content = onnx_model.SerializeToString()
        difference = largest_difference(content, interface) if has_onnxruntime() else None
        metadata = {entry.key: entry.value for entry in onnx_model.metadata_props}
        if output is None:
            logged = log_mlflow_model(onnx_model, interface, metadata, name)
            return ExportResult(None, (), len(content), metadata, difference, logged)
        if format == "triton":
            files = write_triton_repository(
                content, interface, network.class_names, output, name or _default_name(model)
            )
        elif format == "mlflow":
            write_mlflow_model(content, interface, metadata, output)
            files = tuple(sorted(path for path in output.rglob("*") if path.is_file()))
        else:
            with atomic_binary_write(output) as file:
                file.write(content)
            files = (output,)
    return ExportResult(output, files, sum(path.stat().st_size for path in files), metadata, difference)


def _check_choices(format: str, precision: str) -> None:
    for name, value, choices in (("format", format, ExportFormat), ("precision", precision, ExportPrecision)):
        if value not in get_args(choices):
            raise ValueError(f"expected {name} to be one of {', '.join(get_args(choices))}, got '{value}'")
    if format == "torch" and precision != "float32":
        raise ValueError(f"expected precision float32 with format torch, got '{precision}': use another format")


def _default_name(model: str | Path) -> str:
    """Return the name of a model's folder, with '-' for every character that a model repository does not allow."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", Path(model).resolve().name).strip(".-") or "tigranet"
