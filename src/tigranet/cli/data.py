"""``tigranet data list``, ``tigranet data fetch`` and ``tigranet data check``."""

import json

from rich.table import Table

from tigranet.cli.options import DataDir, Json
from tigranet.cli.output import print_line, print_table, progress_console


def list_data(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the named data sets, and whether their files are there."""
    from tigranet.data import REGISTRY, data_folder

    folder = data_folder(data_dir)
    available = {name: entry.source.there(folder) for name, entry in REGISTRY.items()}
    if as_json:
        print(json.dumps({name: {"about": entry.about, "there": available[name]} for name, entry in REGISTRY.items()}))
        return
    table = Table("name", "what it is", "source", "available")
    for name, entry in REGISTRY.items():
        table.add_row(name, entry.about, entry.source.name, "yes" if available[name] else "no")
    print_table(table)
    print_line(f"data folder: {folder}")


def fetch(data_dir: DataDir = None) -> None:
    """Download MNIST from its public mirrors; files that are there already are kept."""
    from tigranet.data import data_folder
    from tigranet.data.sources.download import fetch_mnist

    for path in fetch_mnist(data_folder(data_dir), progress_console()):
        print_line(path)


def check(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Load every source in the data folder and verify its content."""
    from tigranet.data import data_folder
    from tigranet.data.sources.registry import check_sources

    folder = data_folder(data_dir)
    verdicts = check_sources(folder)
    if as_json:
        print(json.dumps(verdicts))
    else:
        table = Table("source", "verdict")
        for source, verdict in verdicts.items():
            table.add_row(source, verdict)
        print_table(table)
        print_line(f"data folder: {folder}")
    if any(verdict.startswith("bad") for verdict in verdicts.values()):
        raise ValueError("some data are bad: delete those files and fetch them again")
