"""Index a CSV or TSV table that lists image files and their labels."""

import csv
from pathlib import Path

from tigranet.csv_text import unquote_formula
from tigranet.data.image_index import PART_NAMES, ImageIndex

PATH_COLUMNS = ("path", "file", "filename", "image")
LABEL_COLUMNS = ("label", "class", "target")
PART_COLUMNS = ("part", "split", "set")


def index_csv(table: Path, group: str | None = None) -> ImageIndex:
    """Index the images listed in a table with a header and one row per image.

    The columns are separated by commas, semicolons or tabs. The column ``path`` has paths relative to the folder of
    the table, ``label`` the name of the class, and the optional column ``part`` one of train, val and test. Other
    names in common use are accepted (``PATH_COLUMNS``, ``LABEL_COLUMNS``, ``PART_COLUMNS``), in upper or lower case.

    Args:
        table: Path of the table.
        group: Name of the column with the group of each image.

    Returns:
        The image files, in the order of the table.

    Raises:
        ValueError: If the table is not text in UTF-8, is empty, lacks a column or a value, has an unknown part, or
            has fewer than 2 classes.
    """
    rows = _read_rows(table)
    columns = {(name or "").strip().lower(): name for name in rows[0]}
    path, label = (_find_column(table, columns, names) for names in (PATH_COLUMNS, LABEL_COLUMNS))
    part = next((columns[name] for name in PART_COLUMNS if name in columns), None)
    for line, row in enumerate(rows, start=2):
        for column in (path, label):
            if not (row[column] or "").strip():
                raise ValueError(f"line {line} of '{table}' has no value in the column '{column}'")
        if part is not None and row[part].strip().lower() not in PART_NAMES:
            raise ValueError(f"line {line} of '{table}': expected the part train, val or test, got '{row[part]}'")
        row[path], row[label] = (unquote_formula(row[column].strip()) for column in (path, label))
    names = sorted({row[label].strip() for row in rows})
    if len(names) < 2:
        raise ValueError(f"expected at least 2 classes in '{table}', got only '{names[0]}'")
    groups = None if group is None else tuple(row[_find_column(table, columns, (group.lower(),))] for row in rows)
    return ImageIndex(
        tuple(names),
        tuple(table.parent / row[path].strip() for row in rows),
        tuple(names.index(row[label].strip()) for row in rows),
        tuple("" if part is None else PART_NAMES[row[part].strip().lower()] for row in rows),
        groups,
    )


def _read_rows(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=header.count)
            rows = list(csv.DictReader(file, delimiter=delimiter, restval=""))
    except UnicodeDecodeError:
        raise ValueError(f"'{table}' is not text in UTF-8: save it as 'CSV UTF-8'") from None
    if not rows:
        raise ValueError(f"'{table}' has no rows: expected a header and one row per image")
    return rows


def _find_column(table: Path, columns: dict[str, str], names: tuple[str, ...]) -> str:
    """Return the first of the columns called ``names``, as it is spelled in the table."""
    for name in names:
        if name in columns:
            return columns[name]
    raise ValueError(f"'{table}' has no column '{names[0]}', it has: {', '.join(columns)}")
