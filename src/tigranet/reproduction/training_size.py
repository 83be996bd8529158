"""The curves of a table that varies the number of training images."""

from collections.abc import Sequence
from typing import Any

from tigranet.figures.training_size import NETWORK_STYLES, ROTATED_TRAINING_STYLE, TrainingSizeCurve
from tigranet.reproduction.experiment import TableSpec
from tigranet.reproduction.render import mean_over_seeds, select_records
from tigranet.reproduction.results_file import Record


def training_size_curves(
    table: TableSpec, records: Sequence[Record], epochs: int | None = None
) -> list[TrainingSizeCurve]:
    """Collect the curves of a table from the records of its runs.

    Args:
        table: The table, with one row per method and number of training images.
        records: Records of any experiments.
        epochs: The number of epochs that the user gave instead of the experiments' own, if any.

    Returns:
        One curve per method with at least one run, in the order of the table.
    """
    styles: dict[tuple[str, str], dict[str, Any]] = {}
    curves: dict[str, TrainingSizeCurve] = {}
    for experiment in table.rows:
        network = (experiment.method, experiment.architecture)
        style = styles.setdefault(network, NETWORK_STYLES[len(styles) % len(NETWORK_STYLES)])
        style = style | (ROTATED_TRAINING_STYLE if experiment.recipe.get("turned") else {})
        runs = select_records(experiment, records, epochs)
        if (accuracy := mean_over_seeds(runs, "rotated")) is not None:
            curve = curves.setdefault(experiment.kind, TrainingSizeCurve(experiment.kind, style, [], []))
            curve.training_images.append(runs[0]["images"])
            curve.accuracies.append(accuracy)
    return list(curves.values())
