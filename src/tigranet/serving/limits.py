"""What a server accepts at most, so that no request takes all memory or all time."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ServerLimits:
    """Limits of a server. All of them must be positive.

    Raises:
        ValueError: If a limit is not positive.
    """

    body_bytes: int = 16 * 2**20
    """Largest body of a request in bytes."""
    pixels: int = 64_000_000
    """Largest number of pixels of an image."""
    images: int = 64
    """Largest number of images in a request."""
    concurrent_requests: int = 32
    """Largest number of requests with images that are in work at the same time. Others are refused at once."""
    connections: int = 512
    """Largest number of open connections."""
    request_seconds: float = 30.0
    """Time for a request, from the end of its header to the end of the answer."""
    header_seconds: float = 10.0
    """Time until the header of the next request of a connection is complete."""
    shutdown_seconds: float = 30.0
    """Time for the requests that are in work when the server is asked to stop."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"expected the limit {field.name} to be positive, got {getattr(self, field.name)}")
