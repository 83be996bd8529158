"""Standard output and standard error: any text can be printed, and a closed terminal does not stop the command.

Standard error shows only progress and notices, so errors in writing to it are ignored. Errors in writing to standard
output are reported, because results would be missing.
"""

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tigranet.terminal_text import replace_unencodable

PRINTABLE = "tigranet-printable"
"""Error handler for standard output. File names keep their bytes, other characters are replaced, see
:func:`~tigranet.terminal_text.replace_unencodable`."""


def _encode_printable(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    replaced = (_encode_character(character, error.encoding) for character in error.object[error.start : error.end])
    return b"".join(replaced), error.end


def _encode_character(character: str, encoding: str) -> bytes:
    try:
        return character.encode("ascii", "surrogateescape")  # a byte of a file name
    except UnicodeEncodeError:
        return replace_unencodable(character, encoding).encode("ascii")


codecs.register_error(PRINTABLE, _encode_printable)


class TolerantStream:
    """A text stream that drops what cannot be written, for example because nobody reads the other end.

    Args:
        stream: The stream to write to. All other attributes are its own.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, or nothing if that fails.

        Args:
            text: The text.

        Returns:
            The length of the text.
        """
        try:
            self.stream.write(text)
        except (OSError, ValueError):  # ValueError: the stream is closed
            discard_output(self.stream)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it if that fails."""
        try:
            self.stream.flush()
        except (OSError, ValueError):
            discard_output(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def discard_output(stream: Any) -> None:
    """Send a stream that cannot be written, with what it has buffered, to the null device.

    Otherwise Python would fail once more when it flushes the stream at exit.

    Args:
        stream: The stream. Nothing happens if it has no file descriptor.
    """
    with contextlib.suppress(OSError, ValueError):
        descriptor = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
        stream.flush()


def flush_results() -> None:
    """Write what is buffered of the results.

    Raises:
        BrokenPipeError: If nobody reads standard output any more.
        OSError: If standard output cannot be written for another reason, such as a full disk.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(f"the results could not be written to standard output: {error.strerror or error}") from None


def open_missing_descriptors() -> None:
    """Open the null device in place of standard input, output and error where they are closed.

    Otherwise the next file that is opened, such as the weights of a model, would have the number of standard error, and
    every library that prints a warning would write into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


@contextmanager
def prepared_streams() -> Iterator[None]:
    """Make standard output and standard error accept any text, and ignore errors of standard error, within the block.

    Yields:
        Nothing.
    """
    open_missing_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=PRINTABLE)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    stderr: Any = sys.stderr
    if stderr is not None:
        sys.stderr = TolerantStream(stderr)
    try:
        yield
    finally:
        sys.stderr = stderr
        if stderr is not None:
            TolerantStream(stderr).flush()
        if sys.stdout is not None:
            TolerantStream(sys.stdout).flush()
