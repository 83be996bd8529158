"""Files that are addressed by URL, through fsspec: S3, Google Cloud Storage, Azure, HTTP and others.

fsspec and the libraries of the stores are imported when a URL is first used. The extra ``remote`` installs them.
"""

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

ATTEMPTS = 4
"""Number of attempts to reach a store before an error is raised."""
FIRST_PAUSE = 0.5
"""Seconds between the first two attempts. Each further pause takes twice as long."""
BUFFER_BYTES = 2**16
"""Number of bytes of an open file that are kept in memory, beside what the store itself reads ahead."""
ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""Errors that another attempt would not change."""
GLOB = re.compile(r"[*?\[]")
"""What makes a path a pattern."""

T = TypeVar("T")


def is_url(text: str | Path) -> bool:
    """Return whether a text is a URL of a store, such as ``s3://bucket/photos``.

    Args:
        text: A path or a URL.

    Returns:
        False for local paths.

    Example:
        >>> is_url("s3://bucket/photos"), is_url("photos"), is_url("C:/photos")
        (True, False, False)
    """
    return re.match(r"[a-z][a-z0-9+.-]+://", str(text)) is not None


class RemoteFiles:
    """The files of one store.

    Args:
        url: Any URL in the store. Credentials and end points come from the environment, as each store documents.

    Raises:
        ModuleNotFoundError: If fsspec, or what it needs for this kind of URL, is not installed.
        ValueError: If there is no such kind of URL.
    """

    def __init__(self, url: str) -> None:
        self._fs = _file_system(url.split("://", 1)[0])

    def find(self, url: str) -> list[str]:
        """List the files that a URL stands for.

        Args:
            url: A file, a folder or a pattern with ``*``, ``?`` or ``[``. The files of a folder and of its sub-folders
                are listed.

        Returns:
            Their URLs, sorted, without hidden files; or ``url`` itself if it is a file.

        Raises:
            FileNotFoundError: If there is nothing at the URL.
            OSError: If the store cannot be reached.
        """
        return self._retry(lambda: self._find(url))

    def _find(self, url: str) -> list[str]:
        self._fs.invalidate_cache()
        if GLOB.search(url):
            names = [name for name in self._fs.glob(url) if not name.endswith("/")]
        elif self._is_file(url):
            return [url]
        else:
            names = self._fs.find(url)
        if not names:
            raise FileNotFoundError(f"there are no files at '{url}'")
        prefix = url.split("://", 1)[0]
        urls = sorted(name if is_url(name) else f"{prefix}://{name.lstrip('/')}" for name in names)
        start = len(GLOB.split(url, maxsplit=1)[0].rsplit("/", 1)[0])
        return [name for name in urls if "/." not in name[start:]]

    def _is_file(self, url: str) -> bool:
        try:
            return not url.endswith("/") and self._fs.info(url)["type"] == "file"
        except FileNotFoundError:
            return False

    def size(self, url: str) -> int | None:
        """Return the number of bytes of a file, or None if the store does not say.

        Args:
            url: The file.

        Raises:
            FileNotFoundError: If there is no such file.
            OSError: If the store cannot be reached.
        """
        size = self._retry(lambda: self._fs.info(url).get("size"))
        return None if size is None else int(size)

    def read(self, url: str) -> bytes:
        """Return the content of a file.

        Args:
            url: The file.

        Raises:
            FileNotFoundError: If there is no such file.
            OSError: If the store cannot be reached.
        """
        return self._retry(lambda: self._fs.cat_file(url))

    def write(self, url: str, content: bytes) -> None:
        """Write a file in one step: object stores show it when it is complete, and not before.

        Args:
            url: The file.
            content: Its content.

        Raises:
            OSError: If the store cannot be written.
        """
        self._retry(lambda: self._fs.pipe_file(url, content))

    def upload(self, path: Path, url: str) -> None:
        """Copy a local file to the store, in one step as :meth:`write` does.

        Args:
            path: The local file.
            url: The file in the store.

        Raises:
            OSError: If the store cannot be written.
        """
        self._retry(lambda: self._fs.put_file(os.fspath(path), url))

    @contextmanager
    def open(self, url: str) -> Iterator[io.BufferedReader]:
        """Open a file to read parts of it.

        Args:
            url: The file.

        Yields:
            The file, which can be read and searched.

        Raises:
            FileNotFoundError: If there is no such file.
            OSError: If the store cannot be reached.
        """
        # The files of some stores return fewer bytes than they are asked for.
        with io.BufferedReader(self._retry(lambda: self._fs.open(url, "rb")), BUFFER_BYTES) as file:
            yield file

    def _retry(self, action: Callable[[], T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return action()
            except ABSENT:
                raise
            except OSError:
                if attempt + 1 == ATTEMPTS:
                    raise
                time.sleep(FIRST_PAUSE * 2**attempt)
            except Exception as error:  # The libraries of some stores have errors of their own.
                if attempt + 1 == ATTEMPTS:
                    raise OSError(f"the store cannot be reached: {type(error).__name__}: {error}") from error
                time.sleep(FIRST_PAUSE * 2**attempt)
        raise AssertionError


@lru_cache
def _file_system(protocol: str) -> Any:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"'{protocol}://' needs fsspec: pip install 'tigranet[remote]'") from None
    try:
        return fsspec.filesystem(protocol)
    except ImportError as error:
        raise ModuleNotFoundError(f"'{protocol}://' needs more: {error}; pip install 'tigranet[remote]'") from None
    except ValueError as error:
        raise ValueError(f"there is no kind of URL '{protocol}://': {error}") from None
