"""Measure a table of the paper, row after row and seed after seed, and set it beside the paper's."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from rich.console import Console
from torch import nn

from tigranet import baselines
from tigranet.data import DataSet, load
from tigranet.experiments.runner import train_and_measure
from tigranet.experiments.tables import TABLES, Row, TableOf
from tigranet.files import whole_file
from tigranet.model import TIGraNet
from tigranet.training import Recipe

MINI = {"mnist-rot": "mnist-rot-mini", "mnist-trans": "mnist-trans-mini"}
"""What a quick run takes instead."""


def build(row: Row, data: DataSet) -> nn.Module:
    """The network of a row, for the images of ``data``."""
    in_maps, height, width = data.train.images.shape[1:]
    classes = len(data.class_names)
    if row.method == "TIGraNet":
        return TIGraNet(row.architecture, classes, in_maps, boundary=row.boundary)
    if row.method == "DeepScat":
        return baselines.DeepScat(row.architecture, classes, in_maps)
    kind: Callable[..., nn.Module] = getattr(baselines, row.method)
    return kind(row.architecture, classes, (height, width), in_maps)


def reproduce(
    name: str,
    results: Path,
    *,
    seeds: Sequence[int] | None = None,
    quick: bool = False,
    epochs: int | None = None,
    data_dir: Path | None = None,
    methods: Sequence[str] = (),
    console: Console | None = None,
) -> str:
    """Table ``name`` in Markdown, with what it was measured by in ``results``: a JSON line for every row and seed.

    What is there already is not measured again, so a run that was broken off goes on. ``quick`` is one seed, and for
    MNIST the small sets. ``methods`` leaves out all others.
    """
    if name not in TABLES:
        raise ValueError(f"there is no '{name}': there are {', '.join(TABLES)}")
    table = TABLES[name]
    chosen = tuple(seeds) if seeds is not None else (0,) if quick else tuple(range(table.seeds))
    results.mkdir(parents=True, exist_ok=True)
    kept = results / f"{name}{'-quick' if quick else ''}.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    rows = [row for row in table.rows if not methods or row.method in methods]
    done = {(line["row"], line["data"], line["seed"], line["epochs given"]) for line in lines}
    for seed in chosen:
        for row in rows:
            data_name = MINI.get(row.data, row.data) if quick else row.data
            if (row.name, data_name, seed, epochs) in done:
                continue
            if console:
                console.print(f"{data_name}, seed {seed}: {row.name}")
            lines.append(_measure(row, data_name, seed, epochs, data_dir, console))
            with kept.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    wanted = [line for line in lines if line["seed"] in chosen and line["epochs given"] == epochs]
    text = as_markdown(table, rows, wanted)
    with whole_file(kept.with_suffix(".md")) as file:
        file.write(text)
    return text


def as_markdown(table: TableOf, rows: Sequence[Row], lines: Sequence[dict[str, Any]]) -> str:
    """The table: mean and standard deviation over the seeds, beside what the paper prints."""
    told = {"train": "training", "validation": "validation", "moved": "moved test", "test": "upright test"}
    head = [told[column] for column in table.columns]
    out = [f"# {table.title}", ""]
    out.append("| data | method | " + " | ".join(f"{name} | paper" for name in head) + " | parameters | seeds |")
    out.append("| --- " * (4 + 2 * len(head)) + "|")
    for row in rows:
        of_row = [line for line in lines if line["row"] == row.name and line["data"] in (row.data, MINI.get(row.data))]
        cells = []
        for number, column in enumerate(table.columns):
            values = [line[column]["mean"] if column == "moved" else line[column] for line in of_row]
            spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{mean(values):.1f}{spread}" if values else "not measured")
            cells.append(row.reported[number] if number < len(row.reported) else "-")
        data = of_row[0]["data"] if of_row else row.data
        parameters = f"{of_row[0]['parameters']:,}" if of_row else "-"
        out.append(f"| {data} | {row.name} | {' | '.join(cells)} | {parameters} | {len(of_row)} |")
    out += [
        "",
        "Mean and standard deviation over the seeds; the paper's deviation is over ten draws of its test set.",
        "",
    ]
    return "\n".join(out)


def _measure(
    row: Row, data_name: str, seed: int, epochs: int | None, data_dir: Path | None, console: Console | None
) -> dict[str, Any]:
    data = _data(data_name, seed, data_dir)
    torch.manual_seed(seed)
    module = build(row, data)
    chosen = {"seed": seed, "turned": row.turned} | ({} if row.jitter else {"jitter": 0.0})
    parameters = sum(parameter.numel() for parameter in module.parameters())
    given = {} if epochs is None else {"epochs": epochs}
    recipe = Recipe.for_images(len(data.train.labels), parameters, **chosen, **given)
    measured = train_and_measure(module, row.architecture, data, recipe, console, boundary=row.boundary)
    return measured.to_json() | {"row": row.name, "seed": seed, "epochs given": epochs, "recipe": asdict(recipe)}


@lru_cache(maxsize=2)
def _data(name: str, seed: int, data_dir: Path | None) -> DataSet:
    return load(name, seed, data_dir)
