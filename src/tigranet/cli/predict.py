"""``tigranet predict``."""

from dataclasses import asdict
from typing import Annotated

import typer

from tigranet.cli.options import Csv, Images, JsonLines, Model, Parquet, global_options
from tigranet.cli.output import write_rows


def predict(
    model: Model,
    images: Images,
    csv: Csv = None,
    parquet: Parquet = None,
    reject: Annotated[float, typer.Option(help="Predict 'unknown' below this probability.")] = 0.0,
    as_json: JsonLines = False,
) -> None:
    """Predict the class of each image, whatever its rotation."""
    from tigranet.data import UnreadableFile
    from tigranet.workflows.predict import stream_predictions

    results = stream_predictions(model, images, reject=reject, device=global_options().device)
    rows = (result if isinstance(result, UnreadableFile) else asdict(result) for result in results)
    write_rows(["path", "label", "probability"], rows, csv=csv, parquet=parquet, as_json=as_json)
