"""Tables of results as text: means over the seeds beside the paper's results, and every run on its own."""

import csv
import io
from collections.abc import Sequence
from dataclasses import fields
from statistics import mean, stdev
from typing import Any

from tigranet.data.augment.rigid import Isometry
from tigranet.evaluation.accuracy import Accuracy
from tigranet.evaluation.robustness import NEAREST, QUARTER
from tigranet.reproduction.experiment import Column, Experiment, TableSpec
from tigranet.reproduction.results_file import Record
from tigranet.training import Recipe

QUICK_DATA = {name: f"{name}-mini" for name in ("mnist-rot", "mnist-rot10", "mnist-trans", "mnist-rot-trans")}
"""The smaller data sets that a quick run uses instead."""

COLUMN_TITLES: dict[Column, str] = {
    "train": "training",
    "validation": "validation",
    "test": "upright test",
    "moved": "moved test",
    "nearest": "same, not interpolated",
    "rotated": "rotated test",
    "drop": "drop",
    "error": "test error, %",
    "protocol": "mean of 37 angles",
    "at_45": "45 degrees",
    "at_90": "90 degrees",
    "balanced": "balanced accuracy",
    "log_loss": "log loss",
    "minutes": "minutes",
}
"""The headings of the columns."""
DECIMALS: dict[Column, int] = {"error": 2, "log_loss": 3}
"""Number of decimals of the columns that do not have one."""
COLUMN_NOTES: dict[Column, str] = {
    "moved": "Moved: rotated; shifted for MNIST-trans; both for MNIST-rot-trans; not moved for ETH-80.",
    "drop": "Drop: upright minus moved, in percentage points.",
    "protocol": "Mean of 37 angles: all images rotated by 0, 10, ..., 360 degrees, with the mean colour outside.",
    "balanced": "Balanced accuracy: mean over the classes of the accuracy on their images.",
    "log_loss": "Log loss: mean of minus the natural logarithm of the probability of the true class.",
    "minutes": "Minutes: duration of one training.",
}
"""Explanations of columns, for the end of a table."""
RARE_COLUMNS: tuple[Column, ...] = ("protocol", "at_45", "at_90", "balanced", "log_loss")
"""Columns that are measured for some tables only."""
MOVED_COLUMNS: tuple[Column, ...] = ("moved", "nearest", "drop")
"""Columns without a value for data sets whose test images are not moved."""
NOT_MOVED = str(Isometry())
"""The movement in the record of such a data set."""


def column_value(record: Record, column: Column) -> float | None:
    """Return the value of a run in a column.

    Args:
        record: The record of the run.
        column: The column.

    Returns:
        The value, in per cent if it is an accuracy; None if it was not measured, or if the test images are not moved.
    """
    if column in MOVED_COLUMNS and record["how"] == NOT_MOVED:
        return None
    match column:
        case "moved" | "nearest":
            return record[column]["mean"]
        case "rotated":
            return record.get("robustness", {}).get("rotated", {}).get("mean")
        case "drop":
            return record["test"] - record["moved"]["mean"]
        case "error":
            return 100 - record["test"]
        case "minutes":
            return record["seconds"] / 60
        case "protocol":
            return record.get("rotations", {}).get("mean")
        case "at_45" | "at_90":
            return record.get("rotations", {}).get(column)
        case "balanced":
            return record.get("scores", {}).get("balanced_accuracy")
        case "log_loss":
            return record.get("scores", {}).get(column)
    return record[column]


def select_records(experiment: Experiment, records: Sequence[Record], epochs: int | None = None) -> list[Record]:
    """Select the records of an experiment as it is defined now.

    Args:
        experiment: The experiment.
        records: Records of any experiments.
        epochs: The number of epochs that the user gave instead of the experiment's own, if any.

    Returns:
        The records with the same name, network, data, images, precision, recipe and number of epochs; one per data set
        and seed, the first, if two processes measured the same.
    """
    recipe = {name: value for name, value in experiment.recipe.items() if epochs is None or name != "epochs"}
    identity = (experiment.name, experiment.architecture, epochs)
    selected = [
        record
        for record in records
        if (record["row"], record["architecture"], record["epochs given"]) == identity
        and record["data"] in (experiment.data, QUICK_DATA.get(experiment.data))
        and all(record.get(name, value) == value for name, value in _conditions(experiment).items())
        and all(record["recipe"].get(name) == value for name, value in recipe.items())
    ]
    first = {(record["data"], record["seed"]): record for record in reversed(selected)}
    return [record for record in selected if first[record["data"], record["seed"]] is record]


def _conditions(experiment: Experiment) -> Record:
    """Return what a record must have in common with an experiment. Old records lack some of it."""
    return {
        "layers": experiment.layers,
        "options": experiment.options,
        "windowed": experiment.windowed,
        "includes validation": experiment.includes_validation,
        "precision": experiment.precision,
        "measured on": "validation" if experiment.on_validation else "test",
    }


def mean_over_seeds(runs: Sequence[Record], column: Column) -> Accuracy | None:
    """Return the mean and the standard deviation of a column over the seeds of an experiment.

    Args:
        runs: The records of one experiment, one per seed.
        column: The column.

    Returns:
        The mean and standard deviation, with the number of seeds in place of that of draws; None if it was not
        measured.
    """
    values = [value for run in runs if (value := column_value(run, column)) is not None]
    return Accuracy(mean(values), stdev(values) if len(values) > 1 else 0.0, len(values)) if values else None


def as_markdown(table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> str:
    """Return a table as Markdown: mean and standard deviation over the seeds, beside the paper's results.

    Args:
        table: The table.
        records: Records of any experiments.
        epochs: The number of epochs that the user gave instead of the experiments' own, if any.

    Returns:
        The text.
    """
    titles = ["data", *(["training images"] if table.varies_training_size else []), "method"]
    for column in table.columns:
        titles += [_title(table, column), "paper"]
    titles += [*(_title(table, column) for column in table.extra_columns), "parameters", "seeds"]
    lines = [f"# {table.title}", "", f"| {' | '.join(titles)} |", "| --- " * len(titles) + "|"]
    for experiment in table.rows:
        cells = _cells(table, experiment, select_records(experiment, records, epochs))
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Mean and standard deviation over the seeds."]
    lines += [note for column, note in COLUMN_NOTES.items() if column in table.all_columns]
    if any(experiment.reported and "±" in experiment.reported[-1] for experiment in table.rows):
        lines += ["The paper's deviation is over ten draws of its test set."]
    return "\n".join([*lines, ""])


def _title(table: TableSpec, column: Column) -> str:
    """Return the heading of a column, which says on which images it was measured."""
    title = COLUMN_TITLES[column]
    return title.replace("test", "validation") if table.on_validation else title


def _cells(table: TableSpec, experiment: Experiment, runs: Sequence[Record]) -> list[str]:
    """Return the cells of one row of a table."""
    cells = [runs[0]["data"] if runs else experiment.data]
    if table.varies_training_size:
        images = runs[0]["images"] if runs else experiment.images
        cells.append(f"{images:,}" if experiment.images else "all")
    cells.append(experiment.kind)
    for number, column in enumerate(table.all_columns):
        is_moved = column not in MOVED_COLUMNS or all(run["how"] != NOT_MOVED for run in runs)
        result = mean_over_seeds(runs, column)
        cells.append(_format(result, column) if result else "not measured" if is_moved else "-")
        if number < len(table.columns):
            cells.append(experiment.reported[number] if number < len(experiment.reported) else "-")
    parameters = f"{runs[0]['parameters']:,}" if runs else "-"
    return [*cells, parameters, str(len(runs))]


def _format(result: Accuracy, column: Column) -> str:
    """Return the mean and standard deviation of a column, with as many decimals as the column has."""
    if column not in DECIMALS:
        return str(result)
    mean_text, std_text = (f"{value:.{DECIMALS[column]}f}" for value in result[:2])
    return f"{mean_text} ± {std_text}" if result.draws > 1 else mean_text


def as_csv(name: str, table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> str:
    """Return every run of a table as a row of a CSV file, with its recipe, machine and versions.

    Args:
        name: The name of the table, for a column.
        table: The table.
        records: Records of any experiments.
        epochs: The number of epochs that the user gave instead of the experiments' own, if any.

    Returns:
        The text; empty if there are no runs.
    """
    file = io.StringIO()
    rows = [_flat(name, table, run) for experiment in table.rows for run in select_records(experiment, records, epochs)]
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def _flat(name: str, table: TableSpec, run: Record) -> dict[str, Any]:
    """Return a record without nesting."""
    moved = run.get("robustness", {})
    shifted = next((accuracy["mean"] for how, accuracy in moved.items() if how.startswith("shifted")), None)
    recipe_fields = [field.name for field in fields(Recipe) if field.name != "seed"]
    row = {
        "table": name,
        "data": run["data"],
        "method": run["row"],
        "architecture": run["architecture"],
        "parameters": run["parameters"],
        "images": run.get("images"),
        "seed": run["seed"],
        "train": run["train"],
        "validation": run["validation"],
        "upright": run["test"],
        "how moved": run["how"],
        "moved": run["moved"]["mean"],
        "moved std": run["moved"]["std"],
        "draws": run["moved"]["draws"],
        "moved, nearest": run["nearest"]["mean"],
        "drop": column_value(run, "drop"),
        "turned by 90 degrees": moved.get(QUARTER, {}).get("mean"),
        "rotated": moved.get("rotated", {}).get("mean"),
        "rotated, nearest": moved.get(NEAREST, {}).get("mean"),
        "shifted": shifted,
        **{COLUMN_TITLES[column]: column_value(run, column) for column in table.all_columns if column in RARE_COLUMNS},
        **{field: run["recipe"].get(field) for field in recipe_fields},
        "seconds": run["seconds"],
        "gpu": run["machine"]["gpu"],
        "cpu": run["machine"]["cpu"],
        **run["versions"],
        "command": run.get("command", ""),
    }
    return {column: round(value, 4) if isinstance(value, float) else value for column, value in row.items()}


def as_row_list(table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> str:
    """Return the numbered rows of a table, with the seeds that are measured.

    Args:
        table: The table.
        records: Records of any experiments.
        epochs: The number of epochs that the user gave instead of the experiments' own, if any.

    Returns:
        One line per row: its number, data set and name, and the seeds of its runs.
    """
    lines = [f"# {table.title}", "", "| row | data | experiment | measured seeds |", "| ---: | --- | --- | --- |"]
    for number, experiment in enumerate(table.rows, start=1):
        seeds = sorted(run["seed"] for run in select_records(experiment, records, epochs))
        measured = ", ".join(map(str, seeds)) or "none"
        lines.append(f"| {number} | {experiment.data} | {experiment.name} | {measured} |")
    return "\n".join([*lines, ""])
