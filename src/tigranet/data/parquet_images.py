"""Images in Parquet files: their content in a column of bytes, or their paths or URLs in a column of text."""

import os
import posixpath
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from tigranet.data.image_content import ImageContent, RemoteImage
from tigranet.data.image_errors import one_line
from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.remote_files import is_url

CONTENT_COLUMNS = ("image", "bytes", "content", "data", "jpg", "jpeg", "png", "webp")
"""Names of columns with the content of image files, of which the first that exists is used."""
PATH_COLUMNS = ("path", "file", "filename", "image", "url", "uri")
"""Names of columns with paths or URLs of image files, of which the first that exists is used."""
NAME_COLUMNS = ("path", "file", "filename", "url", "uri", "__key__", "key", "id", "name")
"""Names of columns that say what an image is called, of which the first that exists is used."""
ROWS_AT_A_TIME = 256
"""Number of rows that are read at a time."""


class DamagedParquetError(ValueError):
    """A file is not a Parquet file, or is damaged. The message is the reason, without the name of the file."""


class NoImageColumnError(ValueError):
    """No column of a Parquet file holds images. The message does not name the file."""


class RowGroups(NamedTuple):
    """Row groups that follow each other in a Parquet file."""

    first: int
    """Number of the first of them."""
    stop: int
    """Number after that of the last of them."""
    images: int
    """Number of rows."""
    has_paths: bool
    """Whether the rows hold paths or URLs, rather than the images."""


class _Columns(NamedTuple):
    """Where images and their names are."""

    image: str
    kind: str
    """``bytes``, ``struct`` of bytes and path, or ``path``."""
    name: str | None


def row_group_ranges(file: BufferedReader, max_images: int, accept_paths: bool = True) -> Iterator[RowGroups]:
    """Divide a Parquet file into ranges of whole row groups. Only the end of the file is read.

    Args:
        file: The open file.
        max_images: Largest number of rows in a range, unless a single row group has more.
        accept_paths: Whether a column of paths or URLs is enough.

    Yields:
        The ranges, in order.

    Raises:
        DamagedParquetError: If it is not a Parquet file.
        NoImageColumnError: If no column holds images.
        ModuleNotFoundError: If pyarrow is not installed.
    """
    parquet = _open(file)
    has_paths = _find_columns(parquet.schema_arrow).kind == "path"
    if has_paths and not accept_paths:
        raise NoImageColumnError("has paths of images, expected images")
    first, images = 0, 0
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if images and images + rows > max_images:
            yield RowGroups(first, group, images, has_paths)
            first, images = group, 0
        images += rows
    if images:
        yield RowGroups(first, parquet.num_row_groups, images, has_paths)


def parquet_images(file: BufferedReader, name: str, first: int, stop: int) -> Iterator[tuple[str, ImageItem]]:
    """Read the images of some row groups of a Parquet file.

    The content of an image is a column of bytes (see :data:`CONTENT_COLUMNS`), or a structure with a field ``bytes``
    as Hugging Face's data sets have. Otherwise a column of text (see :data:`PATH_COLUMNS`) holds URLs, or paths
    relative to the folder of the file.

    Args:
        file: The open file.
        name: Path or URL of the file.
        first: Number of the first row group.
        stop: Number after that of the last row group.

    Yields:
        For each row, in order, what the image is called, and the image or the reason why there is none. An image
        without a name is called ``NAME#ROW``.

    Raises:
        DamagedParquetError: If the file is damaged.
        NoImageColumnError: If no column holds images or paths.
        ModuleNotFoundError: If pyarrow is not installed.
    """
    parquet = _open(file)
    columns = _find_columns(parquet.schema_arrow)
    row = sum(parquet.metadata.row_group(group).num_rows for group in range(first))
    selected = [columns.image, *([columns.name] if columns.name not in (None, columns.image) else [])]
    for batch in parquet.iter_batches(ROWS_AT_A_TIME, range(first, stop), selected):
        images = batch.column(columns.image).to_pylist()
        names = [None] * len(images) if columns.name is None else batch.column(columns.name).to_pylist()
        for value, given_name in zip(images, names, strict=True):
            yield _image(columns, value, given_name, name, row)
            row += 1


def _image(columns: _Columns, value: Any, given_name: Any, file: str, row: int) -> tuple[str, ImageItem]:
    is_path = columns.kind == "path"
    if columns.kind == "struct" and value is not None:
        stored_path = value.get("path")
        given_name = given_name if given_name is not None else stored_path
        is_path = value["bytes"] is None
        value = stored_path if is_path else value["bytes"]
    called = f"{file}#{row}" if given_name in (None, "") else str(given_name)
    if value is None or value == "":
        return called, UnreadableFile(Path(called), f"has no value in the column '{columns.image}'")
    if not is_path:
        return called, ImageContent(called, value)
    if is_url(value):
        return value, RemoteImage(value)
    if is_url(file):
        address = posixpath.join(posixpath.dirname(file), value)
        return address, RemoteImage(address)
    path = os.path.join(os.path.dirname(file), value)
    return path, Path(path)


def _open(file: BufferedReader) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise ModuleNotFoundError("reading Parquet needs pyarrow: pip install 'tigranet[parquet]'") from None
    try:
        return pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise DamagedParquetError(f"cannot be read as a Parquet file: {one_line(str(error))}") from None


def _find_columns(schema: Any) -> _Columns:
    import pyarrow.types as types

    def is_bytes(name: str) -> bool:
        kind = schema.field(name).type
        return types.is_binary(kind) or types.is_large_binary(kind)

    def is_text(name: str) -> bool:
        kind = schema.field(name).type
        return types.is_string(kind) or types.is_large_string(kind)

    def has_bytes(name: str) -> bool:
        kind = schema.field(name).type
        return types.is_struct(kind) and kind.get_field_index("bytes") >= 0

    names = [name for name in schema.names if schema.names.count(name) == 1]
    name_column = next((name for name in NAME_COLUMNS if name in names and is_text(name)), None)
    for kind, has_kind, preferred in (("bytes", is_bytes, CONTENT_COLUMNS), ("struct", has_bytes, CONTENT_COLUMNS)):
        usable = [name for name in names if has_kind(name)]
        chosen = next((name for name in preferred if name in usable), usable[0] if len(usable) == 1 else None)
        if chosen is not None:
            return _Columns(chosen, kind, name_column)
    chosen = next((name for name in PATH_COLUMNS if name in names and is_text(name)), None)
    if chosen is None:
        raise NoImageColumnError(
            f"has the columns {', '.join(map(repr, schema.names))}, expected bytes in one of "
            f"{', '.join(CONTENT_COLUMNS)}, or text in one of {', '.join(PATH_COLUMNS)}"
        )
    return _Columns(chosen, "path", None)
