"""``tigranet features``."""

from tigranet.cli.options import Csv, Images, JsonLines, Model, Parquet, Precision, global_options
from tigranet.cli.output import write_rows


def features(
    model: Model,
    images: Images,
    csv: Csv = None,
    parquet: Parquet = None,
    precision: Precision = "32",
    as_json: JsonLines = False,
) -> None:
    """Compute features that do not change when an image is rotated, for any other classifier."""
    from tigranet.data import UnreadableFile
    from tigranet.workflows.features import stream_features

    names, results = stream_features(model, images, device=global_options().device, precision=precision)
    rows = (
        result
        if isinstance(result, UnreadableFile)
        else {"path": str(result.path)} | dict(zip(names, result.values.tolist(), strict=True))
        for result in results
    )
    write_rows(["path", *names], rows, csv=csv, parquet=parquet, as_json=as_json)
