"""The log of a server: one JSON object per line. Bodies, headers and query strings are never part of it."""

import json
import logging
import sys
from typing import Any

from tigranet.quoted_text import shorten

LOGGER = "tigranet.serving"
"""Name of the logger of the server."""
SERVER_LOGGER = "uvicorn.error"
"""Name of the logger of the HTTP implementation."""


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record.

        Args:
            record: The record. Its attribute ``fields`` holds further values.

        Returns:
            A JSON object in one line.
        """
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TolerantHandler(logging.StreamHandler[Any]):
    """Writes to a stream, and ignores errors of the stream: a closed log must not stop the server."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore an error in writing.

        Args:
            record: The record that could not be written.
        """


def configure_log(stream: Any = None) -> None:
    """Send the log of the server to a stream.

    Args:
        stream: The text stream. The default is standard output.
    """
    handler = TolerantHandler(stream or sys.stdout)
    handler.setFormatter(JsonFormatter())
    for name, level in ((LOGGER, logging.INFO), (SERVER_LOGGER, logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def log_event(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Write a line to the log.

    Args:
        event: What has happened.
        level: Level of the line.
        error: An exception whose traceback is added.
        **fields: Further values. Strings are shortened.
    """
    values = {name: shorten(value) if isinstance(value, str) else value for name, value in fields.items()}
    logging.getLogger(LOGGER).log(level, event, extra={"fields": values}, exc_info=error)
