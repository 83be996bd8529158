"""Tell a file that cannot be reached now from a file whose content is bad."""

import errno

CONTENT_ERRORS = frozenset({errno.EINVAL, errno.EOVERFLOW, errno.EISDIR})
"""Errors of the system that a bad content causes, such as an offset before the start of the file."""


def is_system_failure(error: BaseException) -> bool:
    """Whether an error comes from the operating system, so that another attempt may succeed.

    These are errors such as a denied permission, too many open files, a failed read, or too little memory. The errors
    that decoders raise for a bad content are not among them.

    Args:
        error: The error, which may have been raised in the handling of another one.

    Returns:
        True if it, or one that led to it, is an ``OSError`` with an error number, or a ``MemoryError``.

    Example:
        >>> is_system_failure(PermissionError(errno.EACCES, "Permission denied"))
        True
        >>> is_system_failure(OSError("image file is truncated"))
        False
    """
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, MemoryError):
            return True
        if isinstance(current, OSError) and current.errno is not None and current.errno not in CONTENT_ERRORS:
            return True
        current = current.__cause__ or current.__context__
    return False
