"""Text in CSV files that spreadsheets open: quoted so that no cell is executed as a formula."""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED_FORMULA = re.compile(r"'+[=+\-@\t\r\n]")


def quote_formula(text: str) -> str:
    """Quote text that a spreadsheet would execute.

    A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, which may read files or call
    other programs. An apostrophe in front makes it plain text. So does one before a tab or a line break, which a
    spreadsheet may drop.

    Args:
        text: The text of a cell.

    Returns:
        The text, with an apostrophe in front if necessary.

    Example:
        >>> quote_formula("=1+1"), quote_formula("nut"), quote_formula("'=1")
        ("'=1+1", 'nut', "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unquote_formula(text: str) -> str:
    """Undo :func:`quote_formula`.

    Args:
        text: The text of a cell.

    Returns:
        The text without the apostrophe that :func:`quote_formula` put in front.

    Example:
        >>> unquote_formula("'=1+1"), unquote_formula("nut"), unquote_formula("'nut'")
        ('=1+1', 'nut', "'nut'")
    """
    return text[1:] if _QUOTED_FORMULA.match(text) else text
