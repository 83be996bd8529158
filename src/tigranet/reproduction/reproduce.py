"""Measure the experiments of a table, one after the other, and write the table beside the paper's results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tigranet.atomic_files import atomic_write
from tigranet.baselines.gmr_resnet import MissingPackageError
from tigranet.reproduction.experiment import Experiment, TableSpec
from tigranet.reproduction.render import QUICK_DATA, as_csv, as_markdown, as_row_list, select_records
from tigranet.reproduction.results_file import append_record, read_records
from tigranet.reproduction.run_experiment import run_experiment
from tigranet.reproduction.tables import TABLES
from tigranet.training import Diverged
from tigranet.workflows.output_folder import check_output_folder, has_matplotlib


@dataclass(frozen=True)
class ReproducedTable:
    """A table with all results that were measured so far."""

    markdown: str
    """The table as text."""
    records: Path
    """The file of the results; the table (.md) and all runs (.csv) are beside it."""
    diverged: tuple[str, ...] = ()
    """The runs that diverged, which are not in the table."""
    pictures: tuple[Path, ...] = ()
    """Pictures of the table, if it has a curve over the number of training images."""
    skipped: tuple[str, ...] = ()
    """The runs that need a package that is not installed."""


def records_path(results: Path, name: str, quick: bool = False) -> Path:
    """Return the file that holds the results of a table.

    Args:
        results: The folder of the results.
        name: The name of the table.
        quick: Whether the results are those of quick runs.

    Returns:
        The path of the file, which need not exist.

    Example:
        >>> str(records_path(Path("results"), "table2", quick=True))
        'results/table2-quick.jsonl'
    """
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
    rows: Sequence[int] = (),
    measure: bool = True,
    networks: Path | None = None,
    device: str = "auto",
    command: str = "",
    console: Console | None = None,
) -> ReproducedTable:
    """Measure the experiments of a table that are not measured yet, and write the table.

    Results are kept, so an interrupted call continues where it stopped. Several calls may run at the same time with
    different seeds or methods: all append to one file, and the table shows everything in it.

    Args:
        name: The name of the table, of :data:`tigranet.reproduction.tables.TABLES`.
        results: The folder to write to.
        seeds: The seeds of the runs; by default as many as the table has.
        quick: Whether to use one seed, and smaller data sets in place of MNIST.
        epochs: Number of epochs instead of each experiment's own.
        data_dir: Folder of the named data sets.
        methods: Only these methods, or experiments given by their full names; by default all.
        data: Only these data sets; by default all.
        rows: Only these rows, numbered from 1; by default all.
        measure: Whether to measure; otherwise the table is written from the results that are there.
        networks: Folder to save the trained TIGraNets to, one sub-folder per run. A run whose network is there already,
            because measuring it was interrupted, is not trained again. Without a folder, networks are not saved.
        device: The device to train on, see :func:`tigranet.devices.select_device`.
        command: The command that the user typed, for the records.
        console: Where to show progress.

    Returns:
        The table, and the runs that diverged or were skipped.

    Raises:
        ValueError: If there is no such table, method, data set or row.
        FileNotFoundError: If ``measure`` is off and nothing was measured yet.
        OSError: If ``results`` cannot be written.
    """
    table = find_table(name)
    _check_names(methods, data)
    _check_rows(name, rows)
    experiments = select_experiments(table, methods, data, rows)
    if not experiments:
        numbers = [f"row {row}" for row in rows]
        selection = " and ".join(", ".join(names) for names in (methods, data, numbers) if names)
        known_methods = dict.fromkeys(experiment.method for experiment in table.rows)
        known_data = dict.fromkeys(experiment.data for experiment in table.rows)
        raise ValueError(
            f"{name} has no experiment with {selection}: it has {', '.join(known_methods)} on {', '.join(known_data)}"
        )
    path = records_path(results, name, quick)
    if not measure and not path.exists():
        raise FileNotFoundError(f"nothing of {name} was measured in '{results}': there is no '{path.name}'")
    if measure:
        check_output_folder(results, "table")
        if networks is not None:
            check_output_folder(networks, "network")
    results.mkdir(parents=True, exist_ok=True)
    if seeds is None:
        seeds = range(1 if quick else table.seeds)
    diverged, skipped = [], []
    for seed in seeds if measure else ():
        for experiment in experiments:
            data_name = QUICK_DATA.get(experiment.data, experiment.data) if quick else experiment.data
            runs = select_records(experiment, read_records(path), epochs)  # other processes may have appended since
            if any((run["data"], run["seed"]) == (data_name, seed) for run in runs):
                continue
            title = f"{data_name}, seed {seed}: {experiment.name}"
            if console:
                console.print(title)
            try:
                record = run_experiment(
                    experiment, data_name, seed, epochs, data_dir, device, console, table.all_columns, networks
                )
            except Diverged as error:
                diverged.append(f"{name}, {title}")
                if console:
                    console.print(f"{title}: {error}")
                continue
            except MissingPackageError as error:
                skipped.append(f"{name}, {title}: {error}")
                continue
            append_record(path, record | {"command": command})
    return replace(_write_table(name, path, epochs, console), diverged=tuple(diverged), skipped=tuple(skipped))


def find_table(name: str) -> TableSpec:
    """Return the table of a name.

    Args:
        name: A key of :data:`tigranet.reproduction.tables.TABLES`.

    Returns:
        The table.

    Raises:
        ValueError: If there is no such table.
    """
    if name not in TABLES:
        raise ValueError(f"there is no table '{name}', expected one of {', '.join(TABLES)}, or all")
    return TABLES[name]


def list_rows(name: str, results: Path, *, quick: bool = False, epochs: int | None = None) -> str:
    """Return the numbered rows of a table, with the seeds that are measured.

    Args:
        name: The name of the table.
        results: The folder of the results.
        quick: Whether the results are those of quick runs.
        epochs: Number of epochs instead of each experiment's own.

    Returns:
        The text.

    Raises:
        ValueError: If there is no such table.
    """
    return as_row_list(find_table(name), read_records(records_path(results, name, quick)), epochs)


def select_experiments(
    table: TableSpec, methods: Sequence[str] = (), data: Sequence[str] = (), rows: Sequence[int] = ()
) -> list[Experiment]:
    """Select experiments of a table.

    Args:
        table: The table.
        methods: Methods, or names of experiments; empty for all.
        data: Data sets; empty for all.
        rows: Numbers of rows, from 1; empty for all.

    Returns:
        The experiments that fit all of them.
    """
    return [
        experiment
        for number, experiment in enumerate(table.rows, start=1)
        if (not methods or _names(experiment) & set(methods))
        and (not data or experiment.data in data)
        and (not rows or number in rows)
    ]


def _names(experiment: Experiment) -> set[str]:
    """Return the names that a user may select an experiment by."""
    return {experiment.method, experiment.kind, experiment.name}


def _check_names(methods: Sequence[str], data: Sequence[str]) -> None:
    """Check that every name stands for something in some table."""
    experiments = [experiment for table in TABLES.values() for experiment in table.rows]
    if unknown := set(methods) - {name for experiment in experiments for name in _names(experiment)}:
        known = sorted({name for experiment in experiments for name in (experiment.method, experiment.kind)})
        raise ValueError(f"there is no method {' or '.join(sorted(unknown))}, expected one of {', '.join(known)}")
    known_data = {experiment.data for experiment in experiments}
    if unknown := set(data) - known_data:
        raise ValueError(
            f"there is no experiment on {' or '.join(sorted(unknown))}, expected one of {', '.join(sorted(known_data))}"
        )


def _check_rows(name: str, rows: Sequence[int]) -> None:
    """Check that a table has rows of these numbers."""
    count = len(TABLES[name].rows)
    if unknown := sorted(row for row in set(rows) if not 1 <= row <= count):
        raise ValueError(f"{name} has the rows 1 to {count}, got {', '.join(map(str, unknown))}")


def _write_table(name: str, path: Path, epochs: int | None, console: Console | None) -> ReproducedTable:
    """Write the table, all runs, and the picture if the table has one."""
    table, records = TABLES[name], read_records(path)
    markdown = as_markdown(table, records, epochs)
    for suffix, content in ((".md", markdown), (".csv", as_csv(name, table, records, epochs))):
        if content:
            with atomic_write(path.with_suffix(suffix)) as file:
                file.write(content)
    pictures: list[Path] = []
    if table.has_curve and has_matplotlib():
        from tigranet.figures.training_size import save_training_size
        from tigranet.reproduction.training_size import training_size_curves

        pictures = save_training_size(path.with_suffix(""), training_size_curves(table, records, epochs))
    elif table.has_curve and console:
        console.print("no picture, because matplotlib is not installed: pip install 'tigranet[figures]'", markup=False)
    return ReproducedTable(markdown, path, pictures=tuple(pictures))
