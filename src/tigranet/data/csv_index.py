"""Index a CSV or TSV table that lists image files and their labels."""

from pathlib import Path

from tigranet.data.csv_table import open_table
from tigranet.data.image_index import PART_NAMES, ImageIndex
from tigranet.quoted_text import shorten

PATH_COLUMNS = ("path", "file", "filename", "image")
LABEL_COLUMNS = ("label", "class", "target")
PART_COLUMNS = ("part", "split", "set")


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
    entries: dict[tuple[Path, str, str, str], None] = {}  # a dictionary keeps the order and drops repeated rows
    num_rows = 0
    with open_table(table) as rows:
        path, label = (rows.find_column(names) for names in (PATH_COLUMNS, LABEL_COLUMNS))
        part = rows.find_column(PART_COLUMNS) if rows.has_column(PART_COLUMNS) else None
        group_column = None if group is None else rows.find_column((group.strip().lower(),))
        for line, row in rows:
            values = [
                "" if column is None else rows.value(line, row, column) for column in (path, label, part, group_column)
            ]
            if part is not None and values[2].lower() not in PART_NAMES:
                raise ValueError(
                    f"line {line} of '{table}': expected the part train, val or test, got '{shorten(values[2])}'"
                )
            entries[table.parent / values[0], values[1], PART_NAMES.get(values[2].lower(), ""), values[3]] = None
            num_rows += 1
    if not num_rows:
        raise ValueError(f"'{table}' has no rows: expected a header and one row per image")
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
        repeated_rows=num_rows - len(entries),
    )
