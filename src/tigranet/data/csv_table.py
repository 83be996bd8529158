"""Read a CSV or TSV table row by row, with limits on its size. Every message names the table and the line."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tigranet.csv_text import unquote_formula
from tigranet.quoted_text import shorten

MAX_TABLE_BYTES = 2**30
"""Largest size of a table."""
MAX_LINE_CHARACTERS = 2**20
"""Largest length of a line."""


class Table:
    """The header of an open table, and its other rows, which are read one after the other.

    Args:
        path: Path of the table, for messages.
        rows: The rows that are not blank, each with the number of its first line.

    Attributes:
        header: The names of the columns as they are in the table.

    Raises:
        ValueError: If there is no header, or if it is not text in UTF-8.
    """

    def __init__(self, path: Path, rows: Iterator[tuple[int, list[str]]]) -> None:
        self.path, self._rows = path, rows
        self.header = next(rows, (1, []))[1]
        if not self.header:
            raise ValueError(f"'{path}' has no rows: expected a header and one row per image")
        if any("\0" in name for name in self.header):  # UTF-16 without a byte order mark
            raise ValueError(f"'{path}' is not text in UTF-8, its header has NUL characters: save it as 'CSV UTF-8'")
        self._columns = [name.strip().lower() for name in self.header]

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Read the rows after the header.

        Yields:
            The number of the first line of each row that is not blank, and its values.

        Raises:
            ValueError: If a row cannot be read, or has more values than the header.
        """
        for line, row in self._rows:
            if any(cell.strip() for cell in row[len(self.header) :]):
                raise ValueError(
                    f"line {line} of '{self.path}' has {len(row)} values, the header has {len(self.header)} columns: "
                    "put values that contain the separator in quotation marks"
                )
            yield line, row

    def has_column(self, names: tuple[str, ...]) -> bool:
        """Return whether there is a column of one of these names.

        Args:
            names: Names in lower case.

        Returns:
            True if there is at least one.
        """
        return bool(set(names) & set(self._columns))

    def find_column(self, names: tuple[str, ...]) -> int:
        """Return the position of the first of the columns called ``names``.

        Args:
            names: Names in lower case, the usual one first.

        Returns:
            The position.

        Raises:
            ValueError: If there is none, or if there are two of one name.
        """
        for name in names:
            if self._columns.count(name) > 1:
                raise ValueError(
                    f"'{self.path}' has {self._columns.count(name)} columns '{name}': rename or remove one of them"
                )
            if name in self._columns:
                return self._columns.index(name)
        raise ValueError(
            f"'{self.path}' has no column '{names[0]}', only {shorten(', '.join(self._columns))}: "
            "rename a column, or add one"
        )

    def value(self, line: int, row: list[str], column: int) -> str:
        """Return a value without spaces around it, as it was before it was quoted for CSV.

        Args:
            line: The number of the line, for messages.
            row: The values of the row.
            column: Position of the column.

        Returns:
            The value.

        Raises:
            ValueError: If it is empty or holds a NUL character.
        """
        value = row[column].strip() if column < len(row) else ""
        if not value:
            raise ValueError(
                f"line {line} of '{self.path}' has no value in the column '{shorten(self.header[column])}': "
                "add it, or remove the line"
            )
        if "\0" in value:
            raise ValueError(
                f"line {line} of '{self.path}' has a NUL character in the column '{shorten(self.header[column])}': "
                "remove it"
            )
        return unquote_formula(value)


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Open a table whose columns are separated by commas, semicolons or tabs.

    Args:
        path: Path of the table.

    Yields:
        The table. It is read within the ``with`` statement.

    Raises:
        OSError: If the table cannot be opened.
        ValueError: If it is not a regular file or not text in UTF-8, is too large, or has no header.
    """
    if not path.is_file():
        raise ValueError(f"'{path}' is not a regular file: expected a table in a CSV or TSV file")
    if path.stat().st_size > MAX_TABLE_BYTES:
        raise ValueError(f"'{path}' is too large: expected at most {MAX_TABLE_BYTES:,} bytes")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = max(",;\t", key=file.readline(csv.field_size_limit()).count)
            file.seek(0)
            yield Table(path, _rows(path, file, delimiter))
    except UnicodeDecodeError:
        raise ValueError(f"'{path}' is not text in UTF-8: save it as 'CSV UTF-8'") from None


def _rows(table: Path, file: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    reader = csv.reader(_lines(table, file), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"line {line} of '{table}' cannot be read, {error}: check that every quotation mark is closed"
            ) from None
        if row:
            yield line, row


def _lines(table: Path, file: TextIO) -> Iterator[str]:
    """Yield the lines. A file of zeros is one line, which could fill the memory."""
    number = 0
    while line := file.readline(MAX_LINE_CHARACTERS + 1):
        number += 1
        if len(line) > MAX_LINE_CHARACTERS:
            raise ValueError(
                f"line {number} of '{table}' is too long: expected at most {MAX_LINE_CHARACTERS:,} characters"
            )
        yield line
