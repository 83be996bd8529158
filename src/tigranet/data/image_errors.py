"""Why a file cannot be read as an image, as one line of text."""

MAX_REASON_CHARACTERS = 200
"""Longer reasons are cut. Decoders sometimes put parts of the file into their messages."""


class UnreadableImageError(ValueError):
    """A file cannot be read as an image. The message is the reason, without the name of the file."""


def one_line(text: str) -> str:
    r"""Return a text as one printable line.

    Control characters, line breaks and the undecodable bytes of file names are written as escapes.

    Args:
        text: Any text, such as the message of a decoder.

    Returns:
        The first line that is not empty, at most ``MAX_REASON_CHARACTERS`` long.

    Example:
        >>> one_line("bad \x1b tag\nmore")
        'bad \\x1b tag'
    """
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in line
    )
    return escaped if len(escaped) <= MAX_REASON_CHARACTERS else escaped[: MAX_REASON_CHARACTERS - 3] + "..."
