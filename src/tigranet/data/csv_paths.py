"""The image files that a CSV or TSV table lists, without labels, for a network that is already trained."""

from collections.abc import Iterator
from pathlib import Path

from tigranet.data.csv_index import PATH_COLUMNS
from tigranet.data.csv_table import open_table
from tigranet.data.letterbox import UnreadableFile


def csv_paths(table: Path) -> Iterator[Path | UnreadableFile]:
    """Read the column of paths of a table row by row. Other columns are not used.

    Args:
        table: Path of the table, as for :func:`~tigranet.data.csv_index.index_csv`.

    Yields:
        The paths, relative to the folder of the table, in its order. A row without a path gives the reason instead. So
        does the table itself if it, or the rest of it, cannot be read.
    """
    try:
        with open_table(table) as rows:
            column = rows.find_column(PATH_COLUMNS)
            for line, row in rows:
                try:
                    yield table.parent / rows.value(line, row, column)
                except ValueError as error:
                    yield UnreadableFile(table, _reason(error, table))
    except (OSError, ValueError) as error:
        yield UnreadableFile(table, _reason(error, table))


def _reason(error: Exception, table: Path) -> str:
    """Return the message of an error without the name of the table, which is shown before it."""
    return str(error).removeprefix(f"'{table}' ").replace(f" of '{table}'", "", 1)
