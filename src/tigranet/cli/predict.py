"""``tigranet predict``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tigranet.cli.options import Coverage, Csv, Images, JsonLines, Model, Parquet, global_options
from tigranet.cli.output import progress_console, write_rows

if TYPE_CHECKING:
    from tigranet.evaluation import Prediction


def predict(
    model: Model,
    images: Images,
    csv: Csv = None,
    parquet: Parquet = None,
    reject: Annotated[float, typer.Option(help="Predict 'unknown' below this probability.")] = 0.0,
    coverage: Coverage = None,
    explain: Annotated[
        Path | None,
        typer.Option(
            help="Write a picture of the evidence for each prediction, and a table, to this folder.", readable=False
        ),
    ] = None,
    as_json: JsonLines = False,
) -> None:
    """Predict the class of each image, whatever its rotation."""
    from tigranet.data import UnreadableFile
    from tigranet.workflows.explain import stream_explanations
    from tigranet.workflows.predict import stream_predictions

    options: dict[str, Any] = {
        "reject": reject,
        "coverage": coverage,
        "device": global_options().device,
        "console": progress_console(),
    }
    if explain is None:
        predictions = stream_predictions(model, images, **options)
    else:
        explanations = stream_explanations(model, images, explain, **options)
        predictions = (each if isinstance(each, UnreadableFile) else each.prediction for each in explanations)
    rows = (each if isinstance(each, UnreadableFile) else _row(each, as_json) for each in predictions)
    names = ["path", "label", "probability", *([] if coverage is None else ["labels"])]
    write_rows(names, rows, csv=csv, parquet=parquet, as_json=as_json)


def _row(prediction: "Prediction", as_json: bool) -> dict[str, Any]:
    """Return the values of a row. In a table the label set is JSON text, because names may contain any separator."""
    row = {"path": prediction.path, "label": prediction.label, "probability": prediction.probability}
    if prediction.labels is None:
        return row
    labels = list(prediction.labels)
    return row | {"labels": labels if as_json else json.dumps(labels, ensure_ascii=False)}
