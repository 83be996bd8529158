"""How the CPU kernels are compiled, and where the compiled code is stored between processes.

Only kernels are called from Python and stored. The functions that they call become a part of them, so these functions
are compiled without the code that reads Python's arguments, and are not stored: this saves a sixth of the time.

numba's own cache looks for changes only in the file of the function that is called, but our kernels call functions in
other files. The cache folder is therefore named after a digest of all kernel sources: a change in any of them leads to
a new folder. Old folders are removed.

Where there is no folder to write to, or a file in it cannot be read, the kernels are compiled in every process, and a
warning gives the reason. Where numba fails to compile, the kernel raises :class:`KernelUnavailableError`, and plain
PyTorch computes the result.
"""

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from tigranet.cache_folder import cache_folder
from tigranet.ops.fallback import KernelUnavailableError, warn_once

TABLE_SOURCES = ("circular_harmonics.py", "ops/orientation_frequencies.py")
"""Files of the package with the numbers and tables from which :mod:`tigranet.ops.cpu.wave_terms` generates code."""
MAX_STORED_VERSIONS = 3
"""Number of versions of the kernels whose compiled code is kept."""

KERNEL = {"no_cfunc_wrapper": True}
"""numba's options for functions that are called from Python, and from no C code."""
PART_OF_KERNEL = KERNEL | {"no_cpython_wrapper": True}
"""numba's options for functions that only compiled functions call."""

_lock = threading.Lock()


def compile_exact(function: Callable[..., Any]) -> Any:
    """Compile a function whose additions are carried out in the order in which they are written.

    Args:
        function: A function in the part of Python that numba compiles.

    Returns:
        The compiled function. Other compiled functions may call it, Python may not.
    """
    return _compile(function, PART_OF_KERNEL)


def compile_reassociated(function: Callable[..., Any]) -> Any:
    """Compile a function whose additions may be carried out in any order: for sums over nodes.

    Args:
        function: A function in the part of Python that numba compiles.

    Returns:
        The compiled function. Other compiled functions may call it, Python may not.
    """
    return _compile(function, PART_OF_KERNEL | {"fastmath": {"reassoc", "nsz"}})


def compile_inlined(function: Callable[..., Any]) -> Any:
    """Compile an exact function that becomes a part of each function that calls it.

    This makes kernels faster that call it for single rows or maps, and takes longer to compile. It is also needed where
    a function calls a reassociated one in its loop: otherwise the process that compiles the kernel would run the
    function as it was compiled by itself, and later processes as it was optimised again within the stored kernel, which
    adds in another order.

    Args:
        function: A function in the part of Python that numba compiles.

    Returns:
        The compiled function. Other compiled functions may call it, Python may not.
    """
    return _compile(function, PART_OF_KERNEL | {"forceinline": True})


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that is called from Python, not from other compiled functions.

    Args:
        function: A function in the part of Python that numba compiles.

    Returns:
        A function with the same arguments. It raises :class:`KernelUnavailableError` if numba cannot compile it.
    """
    compiled = _compile(function, KERNEL)
    _store_between_processes(compiled)
    reason: str | None = None

    @wraps(function)
    def call(*args: Any) -> Any:
        nonlocal reason
        if reason is not None:  # compiling again would fail again, and take a second each time
            raise KernelUnavailableError(reason)
        try:
            return compiled(*args)
        except MemoryError:
            raise
        except Exception as error:  # compiled code raises nothing itself
            first_line = str(error).strip().partition("\n")[0]
            reason = f"numba {numba.__version__} cannot compile it ({type(error).__name__}: {first_line})"
            raise KernelUnavailableError(reason) from error

    return call


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def _store_between_processes(compiled: Any) -> None:
    """Store the code of a kernel whenever it is compiled, and load it instead where it is stored."""
    folder = kernel_cache_folder()
    if folder is not None:
        with _lock:  # numba reads the folder from its configuration, which belongs to the user
            config: Any = numba.config
            folder_of_user, config.CACHE_DIR = config.CACHE_DIR, str(folder)
            try:
                compiled._cache = _ForgivingCache(compiled.py_func)
            except Exception as error:
                _warn_no_cache(error)
            finally:
                config.CACHE_DIR = folder_of_user


_NumbaCache: Any = caching.FunctionCache


class _ForgivingCache(_NumbaCache):  # type: ignore[misc]
    """numba's cache of one function, except that files that cannot be read or written only cause a warning."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for a signature.

        Args:
            sig: The types of the arguments.
            target_context: numba's description of the CPU.

        Returns:
            The compiled code, or None if it has to be compiled.
        """
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            warn_once(
                f"tigranet compiles kernels again, as stored ones cannot be read ({type(error).__name__}: {error})"
            )
            with suppress(OSError):
                self.flush()  # the damaged files are replaced
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the code for a signature.

        Args:
            sig: The types of the arguments.
            data: The compiled code.
        """
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn_no_cache(error)


@cache
def kernel_cache_folder() -> Path | None:
    """Return the folder for the compiled code of this version of the kernels.

    It is ``tigranet-<digest>`` in the folder of the environment variable ``NUMBA_CACHE_DIR``, else
    ``numba/<digest>`` in tigranet's cache folder.

    Returns:
        The folder, which exists and can be written to; None, after a warning, if there is none.
    """
    try:
        digest = source_digest()
        parent = os.environ.get("NUMBA_CACHE_DIR")
        prefix = "tigranet-" if parent else ""
        folder = (Path(parent) if parent else cache_folder() / "numba") / f"{prefix}{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
        remove_old_versions(folder.parent, prefix, len(digest))
    except OSError as error:
        _warn_no_cache(error)
        return None
    return folder


def source_digest() -> str:
    """Return a digest of the source files of all CPU kernels, and of the tables from which code is generated."""
    digest, package = hashlib.sha256(), Path(__file__).parents[2]
    for path in [*sorted(Path(__file__).parent.glob("*.py")), *(package / name for name in TABLE_SOURCES)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def remove_old_versions(parent: Path, prefix: str, digest_length: int) -> None:
    """Remove the compiled code of old versions of the kernels.

    Args:
        parent: The folder that holds one sub-folder per version.
        prefix: The start of the names of these sub-folders.
        digest_length: The number of hexadecimal digits after the prefix. Other sub-folders stay.
    """
    versions = [
        path
        for path in parent.iterdir()
        if path.name.startswith(prefix)
        and len(path.name) == len(prefix) + digest_length
        and set(path.name[len(prefix) :]) <= set("0123456789abcdef")
        and path.is_dir()
    ]
    versions.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in versions[MAX_STORED_VERSIONS:]:
        shutil.rmtree(path, ignore_errors=True)


def _warn_no_cache(error: Exception) -> None:
    warn_once(
        "tigranet cannot store compiled kernels and compiles them in every process "
        f"({type(error).__name__}: {error}); set TIGRANET_CACHE to a folder that can be written to",
    )
