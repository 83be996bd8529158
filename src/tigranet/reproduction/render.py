"""A table as it is printed: means over the seeds beside the paper's figures, and every run by itself."""

import csv
import io
from collections.abc import Sequence
from dataclasses import fields
from statistics import mean, stdev
from typing import Any

from tigranet.data.augment.rigid import Isometry
from tigranet.evaluation.accuracy import Accuracy
from tigranet.evaluation.robustness import NEAREST, QUARTER
from tigranet.reproduction.experiment import Column, Row, TableSpec
from tigranet.reproduction.results_file import Record
from tigranet.training import Recipe

MINI = {name: f"{name}-mini" for name in ("mnist-rot", "mnist-rot10", "mnist-trans", "mnist-rot-trans")}
"""What a quick run takes instead."""

TOLD: dict[Column, str] = {
    "train": "training",
    "validation": "validation",
    "test": "upright test",
    "moved": "moved test",
    "nearest": "same, not interpolated",
    "rotated": "rotated test",
    "drop": "drop",
}


MOVED: tuple[Column, ...] = ("moved", "nearest", "drop")
"""What there is only where test images are moved."""
UPRIGHT = Isometry()


def value(record: Record, column: Column) -> float | None:
    """What a run has in a column, in per cent; None if it was not measured, or its test images are not moved."""
    if column in MOVED and record["how"] == str(UPRIGHT):
        return None
    match column:
        case "moved" | "nearest":
            return record[column]["mean"]
        case "rotated":
            return record.get("robustness", {}).get("rotated", {}).get("mean")
        case "drop":
            return record["test"] - record["moved"]["mean"]
    return record[column]


def of_row(row: Row, records: Sequence[Record], epochs: int | None = None) -> list[Record]:
    """The runs of a row, measured as it is now, with the epochs that were given instead of its own, if any were."""
    recipe = row.recipe if epochs is None else {name: x for name, x in row.recipe.items() if name != "epochs"}
    return [
        record
        for record in records
        if (record["row"], record["architecture"], record["epochs given"]) == (row.name, row.architecture, epochs)
        and record["data"] in (row.data, MINI.get(row.data))
        and record.get("layers", row.layers) == row.layers
        and all(record["recipe"].get(name) == wanted for name, wanted in recipe.items())
    ]


def over_seeds(runs: Sequence[Record], column: Column) -> Accuracy | None:
    """Mean and standard deviation over the seeds of a row, in place of draws; None if it was not measured."""
    values = [seen for run in runs if (seen := value(run, column)) is not None]
    return Accuracy(mean(values), stdev(values) if len(values) > 1 else 0.0, len(values)) if values else None


def as_markdown(table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> str:
    """The table: mean and standard deviation over the seeds, beside what the paper prints."""
    head = [f"{TOLD[column]} | paper" for column in table.columns] + [TOLD[column] for column in table.also]
    images = ["training images"] if table.by_images else []
    titles = ["data", *images, "method", *head, "parameters", "seeds"]
    width = 4 + len(images) + 2 * len(table.columns) + len(table.also)
    out = [f"# {table.title}", "", f"| {' | '.join(titles)} |", "| --- " * width + "|"]
    for row in table.rows:
        runs = of_row(row, records, epochs)
        cells = []
        for number, column in enumerate((*table.columns, *table.also)):
            still = column in MOVED and any(run["how"] == str(UPRIGHT) for run in runs)
            cells.append(str(over_seeds(runs, column) or ("-" if still else "not measured")))
            if number < len(table.columns):
                cells.append(row.reported[number] if number < len(row.reported) else "-")
        data = runs[0]["data"] if runs else row.data
        parameters = f"{runs[0]['parameters']:,}" if runs else "-"
        count = [f"{runs[0]['images'] if runs else row.images:,}"] if row.images else ["all"] * len(images)
        shown = [data, *count, row.kind, *cells, parameters, str(len(runs))]
        out.append(f"| {' | '.join(shown)} |")
    out += ["", "Mean and standard deviation over the seeds."]
    if "moved" in (*table.columns, *table.also):
        out += ["Moved: rotated, shifted for MNIST-trans, both for MNIST-rot-trans, and for ETH-80 not at all."]
        out += ["'drop' is what is lost against upright."]
    if any(row.reported and "±" in row.reported[-1] for row in table.rows):
        out += ["The paper's deviation is over ten draws of its test set."]
    return "\n".join([*out, ""])


def as_csv(name: str, table: TableSpec, records: Sequence[Record], epochs: int | None = None) -> str:
    """Every run of the table in a row of its own, with what it was measured by."""
    file = io.StringIO()
    rows = [_plain(name, run) for row in table.rows for run in of_row(row, records, epochs)]
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def _plain(name: str, run: Record) -> dict[str, Any]:
    moved = run.get("robustness", {})
    shifted = next((seen["mean"] for how, seen in moved.items() if how.startswith("shifted")), None)
    of_recipe = [field.name for field in fields(Recipe) if field.name != "seed"]
    plain = {
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
        "drop": value(run, "drop"),
        "turned by 90 degrees": moved.get(QUARTER, {}).get("mean"),
        "rotated": moved.get("rotated", {}).get("mean"),
        "rotated, nearest": moved.get(NEAREST, {}).get("mean"),
        "shifted": shifted,
        **{what: run["recipe"].get(what) for what in of_recipe},
        "seconds": run["seconds"],
        "gpu": run["machine"]["gpu"],
        "cpu": run["machine"]["cpu"],
        **run["versions"],
        "command": run.get("command", ""),
    }
    return {what: round(x, 4) if isinstance(x, float) else x for what, x in plain.items()}
