"""Measure a table, row after row and seed after seed, and set it beside the paper's."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from tigranet import baselines
from tigranet.atomic_files import atomic_write
from tigranet.baselines.baseline import Baseline
from tigranet.data import DataSet, load
from tigranet.data.splits import even
from tigranet.model import TIGraNet
from tigranet.reproduction.experiment import Row, TableSpec
from tigranet.reproduction.render import MINI, as_csv, as_markdown, of_row
from tigranet.reproduction.results_file import Record, add_record, records
from tigranet.reproduction.runner import train_and_measure
from tigranet.reproduction.tables import TABLES
from tigranet.training import Diverged, Recipe

ENOUGH = 1_000
"""Validation images, where there are few to train on: no more are looked at."""


def build(row: Row, data: DataSet) -> nn.Module:
    """The network of a row, for the images of ``data``."""
    in_maps, height, width = data.train.images.shape[1:]
    kind: Callable[..., nn.Module] = TIGraNet if row.method == "TIGraNet" else getattr(baselines, row.method)
    size = [(height, width)] if isinstance(kind, type) and issubclass(kind, Baseline) else []
    module = kind(row.architecture, len(data.class_names), *size, in_maps, **row.options)
    for part in row.without:
        setattr(module, part, nn.Identity())
    return module


def kept_in(results: Path, name: str, quick: bool = False) -> Path:
    """The file in ``results`` of what was measured for table ``name``; the table and the sheet stand beside it."""
    return results / f"{name}{'-quick' if quick else ''}.jsonl"


def reproduce(
    name: str,
    results: Path,
    *,
    seeds: Sequence[int] | None = None,
    quick: bool = False,
    epochs: int | None = None,
    data_dir: Path | None = None,
    methods: Sequence[str] = (),
    data: Sequence[str] = (),
    measure: bool = True,
    command: str = "",
    console: Console | None = None,
) -> tuple[str, list[str]]:
    """Table ``name`` in Markdown, with what it was measured by in ``results``: a JSON line for every row and seed; and
    the runs that diverged, of which there is none.

    What is there already is not measured again, so a run that was broken off goes on, and several may share the work,
    each with seeds or methods of its own: all add to one file, and the table shows all that is in it. ``quick`` is one
    seed, and for MNIST the small sets. ``methods`` leaves out all others; a row may be given by its whole name.
    ``data`` leaves out other data sets. With ``measure`` off the table is written of what is there. ``command`` is what
    is said of how it was called.
    """
    if name not in TABLES:
        raise ValueError(f"there is no '{name}': there are {', '.join(TABLES)}, and all")
    table = TABLES[name]
    every = [row for each in TABLES.values() for row in each.rows]
    if unknown := set(methods) - {said for row in every for said in _names(row)}:
        known = sorted({said for row in every for said in (row.method, row.kind)})
        raise ValueError(f"no row is called {' or '.join(sorted(unknown))}: there are {', '.join(known)}")
    if unknown := set(data) - (sets := {row.data for row in every}):
        raise ValueError(f"no row is about {' or '.join(sorted(unknown))}: there are {', '.join(sorted(sets))}")
    chosen = tuple(seeds) if seeds is not None else (0,) if quick else tuple(range(table.seeds))
    if not (rows := rows_of(table, methods, data)):
        asked = " and ".join(", ".join(given) for given in (methods, data) if given)
        sorts, about = (dict.fromkeys(getattr(row, of) for row in table.rows) for of in ("method", "data"))
        raise ValueError(f"{name} has no row of {asked}: it has {', '.join(sorts)} on {', '.join(about)}")
    kept = kept_in(results, name, quick)
    if not measure and not kept.exists():
        raise FileNotFoundError(f"nothing of {name} was measured in '{results}': there is no '{kept.name}'")
    results.mkdir(parents=True, exist_ok=True)
    diverged = []
    for seed in chosen if measure else ():
        for row in rows:
            data_name = MINI.get(row.data, row.data) if quick else row.data
            done = of_row(row, records(kept), epochs)  # read again: others may be adding to it
            if any((record["data"], record["seed"]) == (data_name, seed) for record in done):
                continue
            run = f"{data_name}, seed {seed}: {row.name}"
            if console:
                console.print(run)
            try:
                measured = _measure(row, data_name, seed, epochs, data_dir, console)
            except Diverged as error:
                diverged.append(f"{name}, {run}")
                if console:
                    console.print(f"{run}: {error}")
                continue
            add_record(kept, measured | {"command": command})
    everything = records(kept)
    text = as_markdown(table, everything, epochs)
    for suffix, content in ((".md", text), (".csv", as_csv(name, table, everything, epochs))):
        if content:
            with atomic_write(kept.with_suffix(suffix)) as file:
                file.write(content)
    return text, diverged


def rows_of(table: TableSpec, methods: Sequence[str] = (), data: Sequence[str] = ()) -> list[Row]:
    """Those of the methods and data sets asked for; all that there are where none is."""
    rows = [row for row in table.rows if not methods or _names(row) & set(methods)]
    return [row for row in rows if not data or row.data in data]


def _names(row: Row) -> set[str]:
    """What it may be called by."""
    return {row.method, row.kind, row.name}


def _measure(
    row: Row, data_name: str, seed: int, epochs: int | None, data_dir: Path | None, console: Console | None
) -> Record:
    data = _data(data_name, seed, data_dir)
    if row.images is not None:
        validation = data.validation.take(list(range(min(ENOUGH, len(data.validation.labels)))))
        train = data.train.take(even(data.train.labels, seed, row.images))
        data = replace(data, train=train, validation=validation)
    torch.manual_seed(seed)
    module = build(row, data)
    chosen: dict[str, Any] = row.recipe | {"seed": seed} | ({} if epochs is None else {"epochs": epochs})
    recipe = Recipe.for_network(module, len(data.train.labels), **chosen)
    boundary = row.options.get("boundary", "free") if row.method == "TIGraNet" else "-"
    measured = train_and_measure(module, row.architecture, data, recipe, console, boundary=boundary)
    about = {"row": row.name, "options": row.options, "without": row.without, "seed": seed, "epochs given": epochs}
    about |= {"layers": row.layers, "images": len(data.train.labels), "recipe": asdict(recipe)}
    return measured.to_json() | about


@lru_cache(maxsize=2)
def _data(name: str, seed: int, data_dir: Path | None) -> DataSet:
    return load(name, seed, data_dir)
