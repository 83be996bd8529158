"""Divide what a user names into parts: folders, patterns, lists, Parquet files, tar files and URLs."""

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import NamedTuple

from tigranet.data.find_images import find_images
from tigranet.data.image_io import SUFFIXES
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.parquet_images import DamagedParquetError, NoImageColumnError, row_group_ranges
from tigranet.data.path_list import LIST_SUFFIXES
from tigranet.data.standard_input import STANDARD_INPUT
from tigranet.data.tar_images import TarError, tar_ranges
from tigranet.data.user_data import TABLE_SUFFIXES
from tigranet.remote_files import GLOB, RemoteFiles, is_url
from tigranet.workflows.bulk_prediction.parts import FilePart, ParquetPart, Part, TarPart, open_shard, shard_size
from tigranet.workflows.image_paths import expand_paths

PARQUET_SUFFIXES = (".parquet", ".pq")
"""Suffixes of Parquet files."""
TAR_SUFFIXES = (".tar",)
"""Suffixes of tar files."""
INDIVISIBLE_SUFFIXES = (".zip", ".npz")
"""Suffixes of files that only ``tigranet predict`` without an output folder reads."""
FOUND_SUFFIXES = (*SUFFIXES, *PARQUET_SUFFIXES, *TAR_SUFFIXES)
"""Suffixes of the files in a folder that are used."""


def absolute_sources(sources: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    """Return names of sources that mean the same in every working directory.

    Args:
        sources: One source or several.

    Returns:
        URLs as they are, except ``file://``, and absolute paths.
    """
    every = [sources] if isinstance(sources, str | Path) else sources
    texts = [str(source).removeprefix("file://") for source in every]
    return tuple(text if is_url(text) or text == str(STANDARD_INPUT) else os.path.abspath(text) for text in texts)


def find_parts(sources: Sequence[str], part_size: int) -> Iterator[Part]:
    """Divide the images of sources into parts, in an order that depends on their names only.

    Args:
        sources: What :func:`absolute_sources` returns. A folder stands for the image, Parquet and tar files in it and
            in its sub-folders; a pattern with ``*``, ``?`` or ``[`` for the files and folders that match; a CSV file or
            a list for the paths in it.
        part_size: Number of images in a part. Parquet files are divided between row groups, and tar files in stores
            are not divided. Of the Parquet files in a folder only those are used that hold images, not paths.

    Yields:
        The parts.

    Raises:
        FileNotFoundError: If a source does not exist.
        ValueError: If a source cannot be divided, or is damaged.
        OSError: If a store cannot be reached.
    """
    files: list[str | tuple[str, str]] = []
    for source in sources:
        for file in _files(source):
            for part in _divide(file, part_size):
                if isinstance(part, TarPart | ParquetPart):
                    yield part
                else:
                    files.append(part)
            if len(files) >= part_size:
                yield FilePart(tuple(files))
                files = []
    if files:
        yield FilePart(tuple(files))


class _File(NamedTuple):
    """A file of a source."""

    path: str
    """Absolute path, or URL."""
    reason: str | None = None
    """Why it cannot be used, if that is known."""
    is_named: bool = True
    """Whether the user named it, and not only a folder that it is in."""


def _divide(file: _File, part_size: int) -> Iterator[TarPart | ParquetPart | str | tuple[str, str]]:
    """Return the parts of a tar or Parquet file, or an image file itself; what cannot be used has a reason."""
    suffix = os.path.splitext(file.path)[1].lower()
    if file.reason is not None:
        yield file.path, file.reason
    elif suffix in PARQUET_SUFFIXES:
        try:
            yield from _parquet_parts(file, part_size)
        except DamagedParquetError as error:
            yield file.path, str(error)
    elif suffix in TAR_SUFFIXES:
        try:
            yield from _tar_parts(file.path, part_size)
        except TarError as error:
            yield file.path, str(error)
    else:
        yield file.path


def _files(source: str) -> Iterator[_File]:
    if is_url(source):
        urls = RemoteFiles(source).find(source)
        for url in urls:
            if urls == [source] or url.lower().endswith(FOUND_SUFFIXES):
                yield _File(url, is_named=urls == [source] or GLOB.search(source) is not None)
    elif GLOB.search(source) and not os.path.lexists(source):
        matches = sorted(glob(source, recursive=True))
        if not matches:
            raise FileNotFoundError(f"no file or folder matches '{source}'")
        for match in matches:
            if os.path.isdir(match) or match.lower().endswith((*FOUND_SUFFIXES, *TABLE_SUFFIXES, *LIST_SUFFIXES)):
                yield from _local_files(match)
    else:
        yield from _local_files(source)


def _local_files(source: str) -> Iterator[_File]:
    if source == str(STANDARD_INPUT) or source.lower().endswith(INDIVISIBLE_SUFFIXES):
        raise ValueError(
            f"'{source}' cannot be divided into parts: unpack it, or predict without an output folder, to a CSV or "
            "Parquet file"
        )
    is_folder = os.path.isdir(source)
    paths = find_images(Path(source), FOUND_SUFFIXES) if is_folder else expand_paths(source)
    for item in paths:
        if isinstance(item, UnreadableFile):
            yield _File(str(item.path), item.reason, not is_folder)
        else:
            yield _File(os.path.abspath(str(item)), None, not is_folder)


def _parquet_parts(file: _File, part_size: int) -> Iterator[ParquetPart]:
    size = shard_size(file.path)
    with open_shard(file.path, size) as opened:
        try:
            for groups in row_group_ranges(opened, part_size, accept_paths=file.is_named):
                yield ParquetPart(file.path, size, *groups)
        except NoImageColumnError as error:
            if file.is_named:  # Folders also contain other tables, such as answers.
                raise ValueError(f"'{file.path}' {error}") from None


def _tar_parts(file: str, part_size: int) -> Iterator[TarPart]:
    size = shard_size(file)
    if is_url(file):  # Counting the images would mean to read the whole file.
        yield TarPart(file, size, 0, None)
        return
    with open_shard(file, size) as opened:
        for offset, images in tar_ranges(opened, part_size):
            yield TarPart(file, size, offset, images)
