"""Text from users, such as class names and file names, in a form that a terminal, a figure or a page can show."""

import re
import unicodedata

JOINERS = "\u200c\u200d"
"""Zero-width characters that some scripts and emoji need. They are shown as they are."""
SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
ASCII_SYMBOLS = {
    "±": "+-",
    "…": "...",
    "\N{MULTIPLICATION SIGN}": "x",
    "°": " deg",
    "\N{EN DASH}": "-",
    "✗": "x",
    "\u00a0": " ",
}
"""What replaces the symbols of our own tables where an encoding does not have them."""
_POSSIBLE_CONTROL = re.compile(r"[^ -~]")


def escape_control_characters(text: str) -> str:
    r"""Replace the characters that a terminal would obey instead of showing.

    These are the control characters (among them the escape character that starts a colour or cursor command, line
    breaks and tabs), line and paragraph separators, invisible format characters such as those that reverse the
    direction of text, and lone surrogates, which stand for bytes of a file name that are not UTF-8.

    Args:
        text: Any text.

    Returns:
        The text on one line, with such characters written as in Python. A byte that is not UTF-8 becomes ``\xff``.

    Example:
        >>> print(escape_control_characters("red: \x1b[31m, next line:\n, reversed: \u202e, byte: \udcff, Greek: λ"))
        red: \x1b[31m, next line:\n, reversed: \u202e, byte: \xff, Greek: λ
    """
    return _POSSIBLE_CONTROL.sub(lambda match: _escape_if_control(match[0]), text)


def replace_unencodable(text: str, encoding: str) -> str:
    r"""Replace the characters that an encoding does not have.

    Args:
        text: Any text.
        encoding: Name of the encoding of a terminal or a file.

    Returns:
        The text, in which ± and the other :data:`ASCII_SYMBOLS` are spelled out and other characters are written as in
        Python.

    Example:
        >>> print(replace_unencodable("λ: 94 ± 0.4", "ascii"))
        \u03bb: 94 +- 0.4
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for symbol, replacement in ASCII_SYMBOLS.items():
            text = text.replace(symbol, replacement)
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _escape_if_control(character: str) -> str:
    if character in JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    short = SHORT_ESCAPES.get(character)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
