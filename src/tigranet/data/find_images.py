"""Find the image files in a folder and its sub-folders. What cannot be used is reported and does not end the search."""

import os
import stat
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from tigranet.data.image_io import SUFFIXES
from tigranet.data.letterbox import UnreadableFile
from tigranet.data.open_file_limit import TooManyOpenFilesError, open_when_possible
from tigranet.data.regular_file import kind_of_file
from tigranet.model_folder import is_begun_training, is_model_folder


def find_images(folder: Path, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path | UnreadableFile]:
    """Find the image files in a folder and its sub-folders, and report what cannot be used there.

    Hidden files are skipped, and so are folders of saved models and of unfinished trainings. Links are followed. A
    folder that is reached twice counts once, where it is reached first, so that loops of links end; a link to a folder
    that contains ``folder`` is not followed. Folders that cannot be listed, broken links, folders that were already
    searched, named pipes, sockets and devices are reported. No file is opened.

    Args:
        folder: Folder to search.
        suffixes: Suffixes of the files to find, in lower case.

    Yields:
        The paths of the files, sorted by name within each folder, and among them what cannot be used.
    """
    searched = _enclosing_folders(folder)
    remaining: list[os.DirEntry[str]] = []  # in reverse order; a list instead of recursion, for trees of any depth

    def search(path: Path) -> Iterator[UnreadableFile]:
        identity = _identity(path)
        if identity in searched:
            yield UnreadableFile(path, f"is the folder '{searched[identity]}', and each folder is searched once")
            return
        searched[identity] = path
        entries, failure = _visible_entries(path)
        remaining.extend(reversed(entries))
        if failure is not None:
            yield UnreadableFile(path, failure)

    yield from search(folder)
    while remaining:
        entry = remaining.pop()
        path = Path(entry.path)
        if (reason := _unusable_entry_reason(entry)) is not None:
            yield UnreadableFile(path, reason)
        elif entry.is_dir():
            if not _belongs_to_a_model(path):
                yield from search(path)
        elif os.path.splitext(entry.name)[1].lower() in suffixes:
            yield path


def image_files(folder: Path, report: Callable[[UnreadableFile], None] = lambda file: None) -> Iterator[Path]:
    """Find the image files in a folder and its sub-folders (see :func:`find_images`).

    Args:
        folder: Folder to search.
        report: Called with everything that cannot be used, during the search.

    Yields:
        Paths of the image files, sorted by name within each folder.
    """
    for item in find_images(folder):
        if isinstance(item, UnreadableFile):
            report(item)
        else:
            yield item


def find_folders(folder: Path, report: Callable[[UnreadableFile], None] = lambda file: None) -> list[Path]:
    """Return the folders directly inside a folder that can be listed and are neither hidden nor saved models.

    Args:
        folder: Folder to search.
        report: Called with everything that may have been meant as such a folder but cannot be used: folders that
            cannot be listed, broken links, links to a folder that contains them, named pipes, sockets and devices.

    Returns:
        The folders, sorted by name.

    Raises:
        OSError: If ``folder`` itself cannot be listed.
    """
    entries, failure = _visible_entries(folder)
    if failure is not None:
        raise OSError(f"the folder '{folder}' cannot be listed: {failure}")
    enclosing = _enclosing_folders(folder) | {_identity(folder): folder}
    folders = []
    for entry in entries:
        path = Path(entry.path)
        reason = _unusable_entry_reason(entry)
        if reason is None and entry.is_dir() and not _belongs_to_a_model(path):
            parent = enclosing.get(_identity(path))
            reason = f"is a link to '{parent}', which contains it" if parent else _visible_entries(path)[1]
            if reason is None:
                folders.append(path)
        if reason is not None:
            report(UnreadableFile(path, reason))
    return folders


def unusable_reason(path: Path) -> str | None:
    """Return why a path is neither a regular file nor a folder. It is not opened, so a named pipe does not block.

    Args:
        path: The path. Links are followed.

    Returns:
        The reason, or None for a regular file or a folder.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        return "is a link to a path that does not exist" if path.is_symlink() else _reason(error)
    except OSError as error:
        return _reason(error)
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return f"is {kind_of_file(mode)}, not an image file"


def _unusable_entry_reason(entry: os.DirEntry[str]) -> str | None:
    """Do the same as :func:`unusable_reason`, with the file type that the listing of the folder already gives."""
    try:
        if entry.is_dir() or entry.is_file():
            return None
    except OSError as error:
        return _reason(error)
    return unusable_reason(Path(entry.path)) or "changed during the search"


def _visible_entries(folder: Path) -> tuple[list[os.DirEntry[str]], str | None]:
    """List what is not hidden in a folder, by name, and return the reason if the list is not complete."""
    entries: list[os.DirEntry[str]] = []
    failure = None
    try:
        with open_when_possible(partial(os.scandir, folder)) as iterator:
            entries.extend(entry for entry in iterator if not entry.name.startswith("."))
    except TooManyOpenFilesError:
        raise
    except OSError as error:
        failure = _reason(error)
    return sorted(entries, key=lambda entry: entry.name), failure


def _identity(folder: Path) -> tuple[int, int] | str:
    """Return what two paths of the same folder have in common."""
    try:
        status = os.stat(folder)
    except OSError:
        return os.fspath(folder)
    # Some file systems have no inode numbers.
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(folder)


def _enclosing_folders(folder: Path) -> dict[tuple[int, int] | str, Path]:
    return {_identity(parent): parent for parent in Path(os.path.realpath(folder)).parents}


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _belongs_to_a_model(folder: Path) -> bool:
    """Whether a folder holds a saved model, or what an unfinished training has left."""
    return is_model_folder(folder) or is_begun_training(folder)
