"""``tigranet predict``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.cli.options import Coverage, Csv, Images, JsonLines, Model, Parquet, Unknown, global_options
from tigranet.cli.output import progress_console, stdout_is_terminal, write_rows
from tigranet.evaluation.prediction_rows import column_names, prediction_row

MAX_PRINTED_CLASSES = 20
"""Number of classes above which a terminal is no place for a column per class."""


def predict(
    model: Model,
    images: Images,
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
    explain: Annotated[
        Path | None,
        typer.Option(
            help="Write a picture of the evidence for each prediction, and a table, to this folder.", readable=False
        ),
    ] = None,
    as_json: JsonLines = False,
) -> None:
    """Predict the class of each image, whatever its rotation. At the end, print how many images have each label."""
    from tigranet.data import UnreadableFile
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
        "console": console,
    }
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
