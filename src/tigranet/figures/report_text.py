"""Text of users in the report page: class names and file names that may hold anything."""

import re
from typing import Any

from markupsafe import Markup, escape

from tigranet.figures.names import shorten
from tigranet.terminal_text import escape_control_characters

MAX_PAGE_NAME_LENGTH = 120
"""Names in the page are shortened to this many characters."""
_BREAKABLE = re.compile(r"(?<=[_/\\,;:|+-])(?=\w)|(?<=[a-z])(?=[A-Z][a-z])")
"""Places inside a name where a line may end: after a separator, and before a capital letter inside a word."""


def printable(value: Any) -> Any:
    """Return a value as the page shows it: text without control characters. Markup and numbers stay as they are.

    Args:
        value: The value of an expression in the template.

    Returns:
        The value to write.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return escape_control_characters(replace_undecodable(value))


def replace_undecodable(text: str) -> str:
    """Replace bytes that are not UTF-8, which Python keeps as surrogate characters, by replacement characters.

    Args:
        text: Any text.

    Returns:
        Text that can be encoded.
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def page_name(name: str) -> str:
    """Return a name as plain text for the page: without control characters, and not too long.

    Args:
        name: Name of a class or of a data set.

    Returns:
        The text. It is not escaped for HTML.
    """
    return escape_control_characters(shorten(replace_undecodable(name), MAX_PAGE_NAME_LENGTH))


def breakable(name: str) -> Markup:
    """Return a name as HTML that ends a line between two words, never inside one.

    Browsers break a name such as ``chaetognath_non_sagitta`` nowhere, or anywhere. The element ``<wbr>`` marks where a
    line may end.

    Args:
        name: Name of a class, of a file or of a data set.

    Returns:
        The name with special characters escaped, and with ``<wbr>`` between its words.

    Example:
        >>> print(breakable("copepod_calanoid <x>"))
        copepod_<wbr>calanoid &lt;x&gt;
    """
    return Markup("<wbr>").join(escape(part) for part in _BREAKABLE.split(page_name(name)))
