"""What commands print: progress and notices to stderr, rows and results to stdout."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tigranet.cli.plain_console import PlainConsole
from tigranet.cli.streams import discard_output, flush_results
from tigranet.terminal_text import escape_control_characters

if TYPE_CHECKING:
    from tigranet.data import UnreadableFile


def progress_console(quiet: bool = False) -> Console:
    """Return the console for progress and notices, which is stderr.

    Args:
        quiet: Whether to print nothing.

    Returns:
        The console.
    """
    return PlainConsole(stderr=True, highlight=False, quiet=quiet)


def print_table(table: Table) -> None:
    """Print a table of results to stdout. Its texts are shown as they are, whatever characters they contain.

    Args:
        table: The table.
    """
    PlainConsole().print_table(table)


def print_line(text: object) -> None:
    """Print a line to stdout: as it is to a file or a pipe, and without control characters to a terminal.

    Args:
        text: What to print, such as a path.
    """
    line = str(text)
    print(escape_control_characters(line) if stdout_is_terminal() else line)


def stdout_is_terminal() -> bool:
    """Return whether results go to a terminal rather than to a file or a pipe."""
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def printing_may_fail(console: Console, saved: str) -> Iterator[None]:
    """Let the command succeed even if its results cannot be printed within the block.

    Args:
        console: Where to print a notice.
        saved: What the command has saved, for the notice.

    Yields:
        Nothing.
    """
    try:
        yield
        flush_results()
    except Exception as error:
        if sys.stdout is not None:
            discard_output(sys.stdout)
        console.print(f"the results could not be printed ({error}); {saved}", soft_wrap=True)


def print_unreadable_files(files: "Sequence[UnreadableFile]", console: Console) -> None:
    """List the files that could not be read, with the reasons; print nothing if there are none.

    Args:
        files: The files.
        console: Where to print.
    """
    if files:
        console.print(f"{len(files)} file{'s were' if len(files) > 1 else ' was'} left out:")
    for file in files:
        text = escape_control_characters(f"{file.path}: {file.reason}")
        console.print(f"  {text}", markup=False, soft_wrap=True)


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
        ValueError: If more than one destination is given, or if none is given and stdout is closed.
    """
    from tigranet.data import UnreadableFile
    from tigranet.evaluation.row_writer import open_row_writer

    if sum((csv is not None, parquet is not None, as_json)) > 1:
        raise ValueError("rows are written to one place: give only one of --csv, --parquet and --json")
    to_stdout = csv is None and parquet is None
    if to_stdout and sys.stdout is None:
        raise ValueError("standard output is closed, so rows cannot be printed: give --csv or --parquet")
    escape = to_stdout and not as_json and stdout_is_terminal()
    console = progress_console()
    unreadable: list[UnreadableFile] = []
    try:
        with open_row_writer(names, csv, parquet, as_json) as write, console.status("0 images") as status:
            for number, row in enumerate(rows, start=1):
                status.update(f"{number} images")
                if isinstance(row, UnreadableFile):
                    unreadable.append(row)
                else:
                    write(_escape_values(row) if escape else row)
    finally:
        print_unreadable_files(unreadable, console)


def _escape_values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: escape_control_characters(value) if isinstance(value, str) else value for name, value in row.items()}
