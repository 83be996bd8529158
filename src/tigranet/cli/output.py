"""What commands print: progress and notices to stderr, rows and results to stdout."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from tigranet.data import UnreadableFile


def progress_console(quiet: bool = False) -> Console:
    """Return the console for progress and notices, which is stderr.

    Args:
        quiet: Whether to print nothing.

    Returns:
        The console.
    """
    return Console(stderr=True, highlight=False, quiet=quiet)


def print_unreadable_files(files: "Sequence[UnreadableFile]", console: Console) -> None:
    """List the files that could not be read, with the reasons; print nothing if there are none.

    Args:
        files: The files.
        console: Where to print.
    """
    if files:
        console.print(f"{len(files)} file{'s were' if len(files) > 1 else ' was'} left out:")
    for file in files:
        console.print(f"  {file.path}: {file.reason}", markup=False, soft_wrap=True)


def write_rows(
    names: Sequence[str],
    rows: "Iterable[dict[str, Any] | UnreadableFile]",
    *,
    csv: Path | None = None,
    parquet: Path | None = None,
    as_json: bool = False,
) -> None:
    """Write rows as they come, to one file or to stdout, and list the unreadable files at the end.

    If there is an error, such as that no file could be read, an existing file stays as it is.

    Args:
        names: The names of the columns.
        rows: A row for each file, or the reason why there is none.
        csv: The CSV file to write.
        parquet: The Parquet file to write.
        as_json: Whether to print one JSON object per line.

    Raises:
        ValueError: If more than one destination is given.
    """
    from tigranet.data import UnreadableFile
    from tigranet.evaluation.row_writer import open_row_writer

    if sum((csv is not None, parquet is not None, as_json)) > 1:
        raise ValueError("rows are written to one place: give only one of --csv, --parquet and --json")
    console = progress_console()
    unreadable: list[UnreadableFile] = []
    try:
        with open_row_writer(names, csv, parquet, as_json) as write, console.status("0 images") as status:
            for number, row in enumerate(rows, start=1):
                status.update(f"{number} images")
                if isinstance(row, UnreadableFile):
                    unreadable.append(row)
                else:
                    write(row)
    finally:
        print_unreadable_files(unreadable, console)
