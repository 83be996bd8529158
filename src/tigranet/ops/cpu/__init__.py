"""The fused kernels for CPUs, compiled by numba when they are first used.

Importing this package does not import numba.
"""

from functools import cache


@cache
def why_unavailable() -> str | None:
    """Say why no kernel can run on this CPU.

    Returns:
        The reason, or None if numba can compile kernels.
    """
    try:
        import tigranet.ops.cpu.compile  # noqa: F401
    except Exception as error:  # also numba's own errors, such as a version of NumPy that it does not support
        return f"numba cannot be imported ({type(error).__name__}: {error}); install it with: pip install numba"
    return None
