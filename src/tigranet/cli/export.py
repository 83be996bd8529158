"""``tigranet export``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.choices import ExportFormat, ExportPrecision
from tigranet.cli.options import Json, Model
from tigranet.cli.output import print_line, progress_console


def export(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, or the folder for the formats triton and mlflow. Without it, the format mlflow logs "
            "the model to a run.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    format: Annotated[
        ExportFormat,
        typer.Option(
            help="onnx: an ONNX file. torch: a program of torch.export. triton: a model repository for the Triton "
            "Inference Server. mlflow: an MLflow model, as a folder or in a run."
        ),
    ] = "onnx",
    preprocess: Annotated[
        bool,
        typer.Option("--preprocess", help="Read pixels from 0 to 255, and return probabilities instead of logits."),
    ] = False,
    precision: Annotated[
        ExportPrecision, typer.Option(help="Precision of the stored weights. float16 halves the size of an ONNX file.")
    ] = "float32",
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in a model repository, or to register it by in MLflow.",
            show_default="that of the model's folder; not registered in MLflow",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Export a model for other programs, with one file for any batch size, height and width."""
    from tigranet.workflows.export import export as export_model

    result = export_model(
        model,
        output,
        format=format,
        preprocess=preprocess,
        precision=precision,
        name=name,
        console=progress_console(),
    )
    if as_json:
        about: dict[str, Any] = {
            "path": result.path and str(result.path),
            "files": [str(path) for path in result.files],
            "bytes": result.num_bytes,
        }
        if result.logged is not None:
            about["mlflow"] = asdict(result.logged)
        print(json.dumps(about | {"largest_difference": result.largest_difference, "metadata": result.metadata}))
        return
    if result.logged is not None:
        print_line(f"logged to run {result.logged.run_id} at {result.logged.tracking_uri}")
        print_line(f"load it with mlflow.pyfunc.load_model('{result.logged.uri}')")
    for path in result.files:
        print_line(path)
    print_line(f"size: {result.num_bytes / 1e6:.2f} MB")
    if result.largest_difference is not None:
        print_line(f"largest difference of a probability from PyTorch: {result.largest_difference:.1e}")
    elif format != "torch":
        print_line("not compared with PyTorch: onnxruntime is not installed, pip install 'tigranet[export]'")
