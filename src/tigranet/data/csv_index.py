"""Index a CSV or TSV table that lists image files and their labels."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tigranet.csv_text import unquote_formula
from tigranet.data.image_index import PART_NAMES, ImageIndex
from tigranet.quoted_text import shorten

PATH_COLUMNS = ("path", "file", "filename", "image")
LABEL_COLUMNS = ("label", "class", "target")
PART_COLUMNS = ("part", "split", "set")
MAX_TABLE_BYTES = 2**30
"""Largest size of a table, which is read into memory."""
MAX_LINE_CHARACTERS = 2**20
"""Largest length of a line."""


def index_csv(table: Path, group: str | None = None) -> ImageIndex:
    """Index the images listed in a table with a header and one row per image.

    The columns are separated by commas, semicolons or tabs. The column ``path`` has paths relative to the folder of
    the table, ``label`` the name of the class, and the optional column ``part`` one of train, val and test. Other
    names in common use are accepted (``PATH_COLUMNS``, ``LABEL_COLUMNS``, ``PART_COLUMNS``), in upper or lower case.
    A row that repeats the path, the label, the part and the group of an earlier row is skipped and counted.

    Args:
        table: Path of the table.
        group: Name of the column with the group of each image.

    Returns:
        The image files, in the order of the table.

    Raises:
        OSError: If the table cannot be opened.
        ValueError: If the table is not a regular file or not text in UTF-8, is empty, lacks a column or a value, has
            one of these columns twice, has a row that does not fit the header or holds a NUL character, has an unknown
            part, or has fewer than 2 classes. The message names the line.
    """
    if not table.is_file():
        raise ValueError(f"'{table}' is not a regular file: expected a table in a CSV or TSV file")
    if table.stat().st_size > MAX_TABLE_BYTES:
        raise ValueError(f"'{table}' is too large: expected at most {MAX_TABLE_BYTES:,} bytes")
    header, rows = _read(table)
    columns = [name.strip().lower() for name in header]
    path, label = (_find_column(table, columns, names) for names in (PATH_COLUMNS, LABEL_COLUMNS))
    part = _find_column(table, columns, PART_COLUMNS) if set(PART_COLUMNS) & set(columns) else None
    group_column = None if group is None else _find_column(table, columns, (group.strip().lower(),))
    entries: dict[tuple[Path, str, str, str], None] = {}  # a dictionary keeps the order and drops repeated rows
    for line, row in rows:
        values = [
            "" if column is None else _value(table, line, header, row, column)
            for column in (path, label, part, group_column)
        ]
        if part is not None and values[2].lower() not in PART_NAMES:
            raise ValueError(
                f"line {line} of '{table}': expected the part train, val or test, got '{shorten(values[2])}'"
            )
        entries[table.parent / values[0], values[1], PART_NAMES.get(values[2].lower(), ""), values[3]] = None
    names = sorted({name for _, name, _, _ in entries})
    if len(names) < 2:
        raise ValueError(
            f"expected at least 2 classes in '{table}', got only '{shorten(names[0])}': add images of another class"
        )
    labels = {name: position for position, name in enumerate(names)}
    return ImageIndex(
        tuple(names),
        tuple(file for file, *_ in entries),
        tuple(labels[name] for _, name, _, _ in entries),
        tuple(part_name for _, _, part_name, _ in entries),
        None if group is None else tuple(group_name for *_, group_name in entries),
        repeated_rows=len(rows) - len(entries),
    )


def _read(table: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header, and the other rows with their line numbers."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            delimiter = max(",;\t", key=file.readline(csv.field_size_limit()).count)
            file.seek(0)
            rows = list(_rows(table, file, delimiter))
    except UnicodeDecodeError:
        raise ValueError(f"'{table}' is not text in UTF-8: save it as 'CSV UTF-8'") from None
    if rows and any("\0" in name for name in rows[0][1]):  # UTF-16 without a byte order mark
        raise ValueError(f"'{table}' is not text in UTF-8, its header has NUL characters: save it as 'CSV UTF-8'")
    if len(rows) < 2:
        raise ValueError(f"'{table}' has no rows: expected a header and one row per image")
    header = rows[0][1]
    for line, row in rows[1:]:
        if any(cell.strip() for cell in row[len(header) :]):
            raise ValueError(
                f"line {line} of '{table}' has {len(row)} values, the header has {len(header)} columns: "
                "put values that contain the separator in quotation marks"
            )
    return header, rows[1:]


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


def _value(table: Path, line: int, header: list[str], row: list[str], column: int) -> str:
    """Return the value of a row in a column, without spaces around it and as it was before it was quoted for CSV."""
    value = row[column].strip() if column < len(row) else ""
    if not value:
        raise ValueError(
            f"line {line} of '{table}' has no value in the column '{shorten(header[column])}': "
            "add it, or remove the line"
        )
    if "\0" in value:
        raise ValueError(
            f"line {line} of '{table}' has a NUL character in the column '{shorten(header[column])}': remove it"
        )
    return unquote_formula(value)


def _find_column(table: Path, columns: list[str], names: tuple[str, ...]) -> int:
    """Return the position of the first of the columns called ``names``."""
    for name in names:
        if columns.count(name) > 1:
            raise ValueError(f"'{table}' has {columns.count(name)} columns '{name}': rename or remove one of them")
        if name in columns:
            return columns.index(name)
    raise ValueError(
        f"'{table}' has no column '{names[0]}', only {shorten(', '.join(columns))}: rename a column, or add one"
    )
