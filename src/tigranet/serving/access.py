"""Who may use a server: bearer tokens, and the host names under which browsers may reach a local server."""

import hmac
from ipaddress import ip_address
from pathlib import Path

from tigranet.json_file import read_limited

MIN_TOKEN_CHARACTERS = 16
"""Length of the shortest token."""
MAX_TOKEN_BYTES = 4096
"""Size of the largest token file."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Host names of a server that only this machine can reach."""


def read_token(path: Path) -> str:
    """Read a token from a file.

    Args:
        path: A text file that holds nothing else.

    Returns:
        The token, without white space around it.

    Raises:
        ValueError: If the token is too short, or holds other characters than printable ASCII.
        OSError: If the file cannot be read.
    """
    token = read_limited(path, MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
    if len(token) < MIN_TOKEN_CHARACTERS or not all("!" <= character <= "~" for character in token):
        raise ValueError(
            f"expected a token of at least {MIN_TOKEN_CHARACTERS} printable ASCII characters without spaces in "
            f"'{path}', such as from 'openssl rand -hex 32'"
        )
    return token


def has_token(authorization: str | None, token: str | None) -> bool:
    """Whether a request carries the token. The comparison takes the same time wherever the two differ.

    Args:
        authorization: Value of the HTTP header ``Authorization``.
        token: The expected token, or None if none is required.

    Returns:
        True for ``Bearer`` and the token.
    """
    if token is None:
        return True
    scheme, _, value = (authorization or "").partition(" ")
    is_equal = hmac.compare_digest(value.strip().encode("utf-8", "replace"), token.encode())
    return scheme.lower() == "bearer" and is_equal


def is_loopback(host: str) -> bool:
    """Whether a server that is bound to ``host`` can be reached from this machine only.

    Args:
        host: A host name or an address.

    Returns:
        True for ``localhost`` and loopback addresses.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
        (True, True, False, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_name(host_header: str | None) -> bool:
    """Whether a request names this machine as its host.

    Web pages cannot read from a local server through a domain name of their own that leads to this machine, because
    the browser sends that name.

    Args:
        host_header: Value of the HTTP header ``Host``.

    Returns:
        True for one of ``LOCAL_NAMES`` with or without a port.

    Example:
        >>> is_local_name("localhost:8000"), is_local_name("[::1]"), is_local_name("rebound.example:8000")
        (True, True, False)
    """
    host = (host_header or "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name in LOCAL_NAMES
