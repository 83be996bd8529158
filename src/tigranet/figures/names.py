"""Names of classes and networks as figures can show them."""

import re

from tigranet.terminal_text import escape_control_characters

MAX_NAME_LENGTH = 22
"""Names are shortened to this many characters."""
ELLIPSIS = "…"
_WORD = re.compile(r"[\s_/.-]*[^\s_/.-]+|[\s_/.-]+$")
"""A word of a name with the separators before it."""
_WORD_END = re.compile(r"(?<=\w)[\s_/.-]+(?=\w)")
"""Separators between the words of a name."""


def shorten(name: str, max_length: int = MAX_NAME_LENGTH) -> str:
    r"""Return a name as a figure can show it: on one line, without control characters, and not too long.

    A long name of several words keeps its first words and its last one, which often tell classes apart. A long word is
    cut.

    Args:
        name: Name of a class or of a network.
        max_length: Largest number of characters.

    Returns:
        The name, or parts of it with an ellipsis.

    Example:
        >>> print(shorten("bolt"), shorten("hexagonal bolt with flange"), shorten("two\nlines"), sep=", ")
        bolt, hexagonal bolt…flange, two\nlines
        >>> print(shorten("acantharia_protist_big_center"), shorten("acantharia_protist_halo"), sep=", ")
        acantharia…center, acantharia…halo
    """
    escaped = escape_control_characters(name[: max_length + 1])
    if len(escaped) <= max_length:
        return escaped
    return _keep_first_and_last_words(name, max_length) or escaped[: max_length - 1] + ELLIPSIS


def _keep_first_and_last_words(name: str, max_length: int) -> str | None:
    """Return the first words and the last word of a name, or None if they do not fit or it has none."""
    escaped = escape_control_characters(name[: 100 * max_length])
    if len(name) > 100 * max_length:
        return None
    separators = list(_WORD_END.finditer(escaped))
    if not separators:
        return None
    last = escaped[separators[-1].end() :]
    ends = [match.start() for match in separators if match.start() + len(ELLIPSIS) + len(last) <= max_length]
    return escaped[: ends[-1]] + ELLIPSIS + last if ends else None


def longest_word(name: str) -> int:
    """Return the number of characters of the longest word of a name, with the separator before it.

    Args:
        name: Name of a class.

    Returns:
        The length of a line on which :func:`wrap` cuts no word.

    Example:
        >>> longest_word("appendicularian_s_shape"), longest_word("")
        (15, 0)
    """
    return max((len(word.strip()) for word in _WORD.findall(escape_control_characters(name[:1000]))), default=0)


def wrap(name: str, line_length: int, max_lines: int) -> list[str]:
    r"""Return a name on several short lines that end between words where possible.

    Args:
        name: Name of a class.
        line_length: Largest number of characters of a line.
        max_lines: Largest number of lines.

    Returns:
        The lines. A word that is longer than a line is cut, and so is a name that does not fit, with an ellipsis.

    Example:
        >>> wrap("hydromedusae_narco_young", 12, 2), wrap("protist noctiluca", 12, 2), wrap("7", 12, 2)
        (['hydromedusae', '_narco_young'], ['protist', 'noctiluca'], ['7'])
    """
    escaped = escape_control_characters(name[: 10 * line_length * max_lines])
    words = _WORD.findall(escaped) or [escaped]
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) <= line_length:
            lines[-1] += word
        else:
            stripped = word.strip() if lines else word
            lines += [stripped[at : at + line_length] for at in range(0, max(1, len(stripped)), line_length)]
    if len(lines) <= max_lines:
        return lines
    return [*lines[: max_lines - 1], lines[max_lines - 1][: line_length - 1] + ELLIPSIS]
