"""Names of classes and networks as figures can show them."""

from tigranet.terminal_text import escape_control_characters

MAX_NAME_LENGTH = 22
"""Names are shortened to this many characters."""


def shorten(name: str, max_length: int = MAX_NAME_LENGTH) -> str:
    r"""Return a name as a figure can show it: on one line, without control characters, and not too long.

    Args:
        name: Name of a class or of a network.
        max_length: Largest number of characters.

    Returns:
        The name, or its beginning followed by an ellipsis.

    Example:
        >>> print(shorten("bolt"), shorten("hexagonal bolt with flange"), shorten("two\nlines"), sep=", ")
        bolt, hexagonal bolt with f…, two\nlines
    """
    escaped = escape_control_characters(name[: max_length + 1])
    return escaped if len(escaped) <= max_length else escaped[: max_length - 1] + "…"
