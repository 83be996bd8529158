"""Text from files and users, made short enough for an error message of one line."""

MAX_QUOTED_CHARACTERS = 200
"""Length beyond which text is shortened."""


def shorten(text: str, max_characters: int = MAX_QUOTED_CHARACTERS) -> str:
    r"""Shorten text, and escape its control characters, so that an error message stays one readable line.

    Args:
        text: Text of any length.
        max_characters: Length beyond which it is shortened.

    Returns:
        The text itself, or its beginning and its end around three dots.

    Example:
        >>> shorten("SC[3,3]"), len(shorten("x" * 10_000_000))
        ('SC[3,3]', 203)
        >>> print(shorten("two\nlines"))
        two\nlines
    """
    if len(text) > max_characters:
        half = max_characters // 2
        text = f"{text[:half]}...{text[-half:]}"
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
