"""Pickles as Python 2 wrote them: texts are bytes, and arrays are calls of NumPy's functions."""

import struct

import numpy as np


def pickle_python2(values: dict[str, object]) -> bytes:
    """Pickle a dictionary of texts, arrays of bytes, and lists of small numbers or texts."""
    items = b"".join(_short_text(key) + _pickle(value) for key, value in values.items())
    return b"\x80\x02}q\x01(" + items + b"u."


def _pickle(value: object) -> bytes:
    if isinstance(value, str):
        return _short_text(value)
    if isinstance(value, int):
        return b"K" + bytes([value])
    if isinstance(value, list):
        return b"](" + b"".join(map(_pickle, value)) + b"e"
    assert isinstance(value, np.ndarray)
    shape = b"(" + b"".join(b"J" + struct.pack("<i", length) for length in value.shape) + b"t"
    dtype = b"cnumpy\ndtype\n" + _short_text(value.dtype.str[1:]) + b"K\0K\1\x87R(K\3U\1|NNN" + 2 * b"J\xff\xff\xff\xff"
    is_fortran = not value.flags.c_contiguous
    content = value.tobytes("F" if is_fortran else "C")
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\2cnumpy\nndarray\nK\0\x85U\1b\x87R(K\1"
        + shape
        + dtype
        + b"K\0tb"
        + (b"\x88" if is_fortran else b"\x89")
        + b"T"
        + struct.pack("<i", len(content))
        + content
        + b"tb"
    )


def _short_text(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode()
