"""Build files of binary formats byte by byte, valid or with lies in them. Bombs are small: their parts are repeated."""

import struct
import zipfile
import zlib
from functools import cache
from pathlib import Path

TIFF_TYPES = {"H": 3, "I": 4, "Q": 16, "B": 1}
"""Type numbers of TIFF by format character of :mod:`struct`."""


@cache
def _first_and_repeated_block(size: int, window: int) -> tuple[bytes, bytes]:
    """Compress zeros, as the first block of a stream and as one that may follow any number of times."""
    stream = zlib.compressobj(9, zlib.DEFLATED, window)
    first, repeated = (stream.compress(bytes(size)) + stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first, repeated


@cache
def zeros_deflated(count: int, *, raw: bool = False) -> bytes:
    """Compress ``count`` zero bytes. The stream is valid, and built in no time by repeating a compressed block."""
    size = min(count, 2**24)
    first, repeated = _first_and_repeated_block(size, -15 if raw else 15)
    blocks, rest = divmod(count, max(1, size))
    tail = zlib.compressobj(9, zlib.DEFLATED, -15)
    end = tail.compress(bytes(rest)) + tail.flush()
    checksum = b"" if raw else struct.pack(">I", (count % 65521) << 16 | 1)  # Adler-32 of zeros
    return first + repeated * (blocks - 1) + end + checksum


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, depth: int = 8, color: int = 0, *, data: bytes | None = None, extra: bytes = b""):
    """Build a PNG file of black pixels. ``data`` replaces the compressed pixels, ``extra`` are more chunks."""
    if data is None:
        channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
        data = zeros_deflated(height * (1 + (width * channels * depth + 7) // 8))
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    palette = png_chunk(b"PLTE", bytes(3)) if color == 3 else b""
    chunks = png_chunk(b"IHDR", header) + palette + extra + png_chunk(b"IDAT", data) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def tiff(
    width: int,
    height: int,
    data: bytes,
    *,
    bits: tuple[int, ...] = (8,),
    sample_format: int = 1,
    compression: int = 1,
    strips: int = 1,
    photometric: int = 1,
    tags: dict[int, tuple[str, tuple[int, ...] | bytes]] | None = None,
    next_page: int = 0,
    pages: int = 1,
) -> bytes:
    """Build a TIFF file of one or more pages. All strips and all pages share the same ``data``."""
    rows = -(-height // strips)
    entries: dict[int, tuple[str, tuple[int, ...] | bytes]] = {
        256: ("I", (width,)), 257: ("I", (height,)), 258: ("H", bits), 259: ("H", (compression,)),
        262: ("H", (photometric,)), 273: ("I", (8,) * strips), 277: ("H", (len(bits),)), 278: ("I", (rows,)),
        279: ("I", (len(data),) * strips), 339: ("H", (sample_format,) * len(bits)), **(tags or {}),
    }  # fmt: skip
    body = bytearray(struct.pack("<2sHI", b"II", 42, 8 + len(data) + len(data) % 2) + data + bytes(len(data) % 2))
    for page in range(pages):
        start = len(body)
        values_start = start + 2 + 12 * len(entries) + 4
        directory, values = struct.pack("<H", len(entries)), b""
        for tag, (kind, content) in sorted(entries.items()):
            packed = content if isinstance(content, bytes) else struct.pack(f"<{len(content)}{kind}", *content)
            count = len(content)
            offset = struct.pack("<I", values_start + len(values)) if len(packed) > 4 else packed.ljust(4, b"\0")
            directory += struct.pack("<HHI", tag, TIFF_TYPES[kind], count) + offset
            values += packed + bytes(len(packed) % 2) if len(packed) > 4 else b""
        last = page == pages - 1
        body += directory + struct.pack("<I", next_page if last else values_start + len(values)) + values
    return bytes(body)


def npy(shape: object, dtype: str = "|u1", data: bytes = b"", order: str = "False") -> bytes:
    """Build an .npy file with any header, also one that contradicts its content."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def zip_bomb(path: Path, members: dict[str, tuple[bytes, int]]) -> None:
    """Write a zip file. Each member is a prefix and the number of zeros that follow it, which are stored compressed."""
    directory, body = b"", b""
    for name, (prefix, zeros) in members.items():
        start = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = start.compress(prefix) + start.flush(zlib.Z_FULL_FLUSH) + zeros_deflated(zeros, raw=True)
        size = min(len(prefix) + zeros, 2**32 - 2)
        checksum = 0 if zeros else zlib.crc32(prefix)  # that of gigabytes would take long, and is compared at the end
        fields = struct.pack("<HHHHIIIHH", 0, 8, 0, 0, checksum, len(packed), size, len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<HH", 20, 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += name.encode()
        body += b"PK\x03\x04" + struct.pack("<H", 20) + fields + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)
    assert zipfile.is_zipfile(path)
