"""``tigranet predict``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.cli.options import Coverage, Csv, JsonLines, Model, Parquet, Precision, Unknown, global_options
from tigranet.cli.output import progress_console, stdout_is_terminal, write_rows

MAX_PRINTED_CLASSES = 20
"""Number of classes above which a terminal is no place for a column per class."""


FOLDER_PANEL = "Many images, with an output folder"
"""Heading in the help."""


class EngineName(StrEnum):
    """What runs the workers."""

    LOCAL = "local"
    RAY = "ray"


def predict(
    model: Model,
    images: Annotated[
        list[str],
        typer.Argument(
            help="Image files or folders of them, zip archives, .npz files of images, CSV files with a column of "
            "paths, text files with one path per line (.txt), or '-' to read paths or one image from standard input. "
            "With -o also patterns, Parquet files of images or paths, tar files of images, and URLs (s3://, gs://, "
            "az://, http://) of all of them.",
        ),
    ],
    csv: Csv = None,
    parquet: Parquet = None,
    top: Annotated[
        int, typer.Option(min=0, help="List this number of most probable classes, with their probabilities.")
    ] = 0,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Give the probabilities of all classes, one column per class.")
    ] = False,
    reject: Annotated[float, typer.Option(help="Predict 'unknown' below this probability.")] = 0.0,
    coverage: Coverage = None,
    unknown: Unknown = "auto",
    precision: Precision = "32",
    explain: Annotated[
        Path | None,
        typer.Option(
            help="Write a picture of the evidence for each prediction, and a table, to this folder.", readable=False
        ),
    ] = None,
    as_json: JsonLines = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Write Parquet files to this folder, or to this URL. After a stop or a kill, the same command "
            "continues.",
            show_default="rows are printed",
            rich_help_panel=FOLDER_PANEL,
        ),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Work on this machine, or on a Ray cluster.", rich_help_panel=FOLDER_PANEL)
    ] = EngineName.LOCAL,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of workers.",
            show_default="one per core, or one per GPU",
            rich_help_panel=FOLDER_PANEL,
        ),
    ] = None,
    part_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of images per Parquet file.", show_default="4096", rich_help_panel=FOLDER_PANEL
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Largest batch size.", show_default="64", rich_help_panel=FOLDER_PANEL),
    ] = None,
) -> None:
    """Predict the class of each image, whatever its rotation. At the end, print how many images have each label."""
    if output is not None:
        if csv is not None or parquet is not None or explain is not None or as_json:
            raise ValueError("-o writes to a folder: give it without --csv, --parquet, --json and --explain")
    elif engine != EngineName.LOCAL or any(value is not None for value in (workers, part_size, batch_size)):
        raise ValueError("--engine, --workers, --part-size and --batch-size are for an output folder: add -o FOLDER")
    from tigranet.data import UnreadableFile
    from tigranet.evaluation.prediction_rows import column_names, prediction_row
    from tigranet.workflows.explain import stream_explanations
    from tigranet.workflows.predict import stream_predictions
    from tigranet.workflows.prediction_summary import PredictionCounter
    from tigranet.workflows.unknown_detection import detects_unknown

    console = progress_console()
    options: dict[str, Any] = {
        "reject": reject,
        "coverage": coverage,
        "top": top,
        "probabilities": probabilities,
        "unknown": unknown,
        "device": global_options().device,
        "precision": precision,
        "console": console,
    }
    if output is not None:
        sizes = {"workers": workers, "part_size": part_size, "batch_size": batch_size}
        given = {name: value for name, value in sizes.items() if value is not None}
        _predict_to_folder(model, images, output, engine=engine.value, **given, **options)
        return
    counter = PredictionCounter()
    if explain is None:
        predictions = stream_predictions(model, images, **options)
        class_names, results = predictions.class_names, counter.count(predictions)
    else:
        explanations = stream_explanations(model, images, explain, **options)
        class_names = explanations.class_names
        results = counter.count(each if isinstance(each, UnreadableFile) else each.prediction for each in explanations)
    prints_rows = csv is None and parquet is None and not as_json and stdout_is_terminal()
    if probabilities and prints_rows and len(class_names) > MAX_PRINTED_CLASSES:
        console.print(
            f"a column for each of {len(class_names)} classes follows; --csv, --parquet or --top are easier to read"
        )
    names = column_names(
        class_names,
        top=top,
        probabilities=probabilities,
        label_sets=coverage is not None,
        novelty=detects_unknown(model, unknown),
    )
    rows = (each if isinstance(each, UnreadableFile) else prediction_row(each, as_json) for each in results)
    write_rows(names, rows, csv=csv, parquet=parquet, as_json=as_json)
    summary = counter.summary
    if summary.images + summary.unreadable > 1:
        for line in summary.describe():
            console.print(line, soft_wrap=True)


def _predict_to_folder(model: Path, source: list[str], output: str, **options: Any) -> None:
    from tigranet.workflows.bulk_prediction import predict_source

    result = predict_source(model, source, output, **options)
    lines = [f"{result.images:,} images in {result.parts:,} Parquet files of '{output}'"]
    if result.unreadable:
        lines.append(f"  {result.unreadable:,} could not be read: the column 'error' says why")
    if result.resumed_parts:
        lines.append(f"  {result.resumed_parts:,} files were there before")
    if result.predicted_images:
        rate = result.predicted_images / result.seconds
        lines.append(f"  {result.predicted_images:,} images in {result.seconds:.0f} s, {rate:,.0f} per second")
    for line in lines:
        options["console"].print(line, markup=False, soft_wrap=True)
