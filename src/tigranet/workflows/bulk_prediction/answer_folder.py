"""The folder of the answers: on a local disk, or in a store. Its files are complete or absent."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from tigranet.abandoned_files import STAGING_PREFIX
from tigranet.atomic_files import atomic_binary_write
from tigranet.remote_files import RemoteFiles, is_url
from tigranet.stop_request import raise_if_stop_requested
from tigranet.workflows.exclusive_output import hold_folder


@dataclass(frozen=True)
class AnswerFolder:
    """A folder that several workers write to, each file in one step.

    Args:
        location: Absolute path or URL.
    """

    location: str

    @staticmethod
    def at(location: str | Path) -> "AnswerFolder":
        """Return the folder at a path or URL.

        Args:
            location: The path, which may be relative, or the URL.

        Returns:
            The folder. It need not exist.
        """
        text = str(location).removeprefix("file://")
        return AnswerFolder(text.rstrip("/") if is_url(text) else os.path.abspath(text))

    def address(self, name: str) -> str:
        """Return the path or URL of a file in the folder.

        Args:
            name: Name of the file.
        """
        return f"{self.location}/{name}"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Create a local folder, and let no other process begin to write to it within the block.

        Stores have no such locks. Two processes would do the same work there, with the same result.

        Yields:
            Nothing.

        Raises:
            OSError: If another process holds the folder, or if it cannot be created.
        """
        with nullcontext() if is_url(self.location) else hold_folder(Path(self.location), "is writing answers to"):
            yield

    def names(self) -> list[str]:
        """Return the names of the files in the folder, sorted. Hidden and temporary files are left out."""
        if not is_url(self.location):
            if not os.path.exists(self.location):
                return []
            return sorted(name for name in os.listdir(self.location) if not name.startswith("."))
        try:
            urls = RemoteFiles(self.location).find(f"{self.location}/")
        except FileNotFoundError:
            return []
        return [url.rsplit("/", 1)[1] for url in urls]

    @contextmanager
    def open(self, name: str) -> Iterator[BufferedReader]:
        """Open a file of the folder for reading.

        Args:
            name: Name of the file.

        Yields:
            The file.

        Raises:
            OSError: If it cannot be read.
        """
        address = self.address(name)
        if is_url(address):
            with RemoteFiles(address).open(address) as remote_file:
                yield remote_file
        else:
            with open(address, "rb") as file:
                yield file

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder. A reader never finds a part of it.

        Args:
            name: Name of the file.
            content: Its content.

        Raises:
            OSError: If it cannot be written.
        """
        address = self.address(name)
        if is_url(address):
            raise_if_stop_requested()
            RemoteFiles(address).write(address, content)
        else:
            with atomic_binary_write(Path(address)) as file:
                file.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of the folder for writing. It appears at the end of the block, and not after an error.

        Args:
            name: Name of the file.

        Yields:
            The file.

        Raises:
            OSError: If it cannot be written.
        """
        address = self.address(name)
        if not is_url(address):
            with atomic_binary_write(Path(address)) as local_file:
                yield local_file
            return
        with tempfile.TemporaryDirectory(prefix=STAGING_PREFIX) as folder:
            staged = Path(folder) / name
            with staged.open("wb") as file:
                yield file
            raise_if_stop_requested()
            RemoteFiles(address).upload(staged, address)
