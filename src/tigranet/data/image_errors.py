"""Why a file cannot be read as an image, as one line of text."""

from tigranet.quoted_text import shorten


class UnreadableImageError(ValueError):
    """A file cannot be read as an image. The message is the reason, without the name of the file."""


def one_line(text: str) -> str:
    r"""Return the first line of a message that is not empty, shortened and with its control characters escaped.

    Decoders sometimes put parts of the file into their messages.

    Args:
        text: Any text, such as the message of a decoder.

    Returns:
        One printable line (see :func:`~tigranet.quoted_text.shorten`).

    Example:
        >>> one_line("bad \x1b tag\nmore")
        'bad \\x1b tag'
    """
    return shorten(next((line.strip() for line in text.splitlines() if line.strip()), ""))
