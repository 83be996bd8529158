"""Image files that are damaged, that lie about their size, that are huge once decoded, or that are of another kind."""

import io
import struct
from functools import cache

import numpy as np
from PIL import Image

from hostile.binary_formats import png, png_chunk, tiff, zeros_deflated

FORMATS = {"png": "PNG", "jpg": "JPEG", "bmp": "BMP", "gif": "GIF", "webp": "WEBP", "tif": "TIFF"}
"""The supported formats, by suffix."""


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (16, 16), **options: object) -> bytes:
    """Encode a small random image."""
    channels = {"L": (), "RGB": (3,), "RGBA": (4,), "CMYK": (4,), "P": ()}[mode]
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8)
    image = Image.fromarray(pixels, mode) if mode in ("CMYK",) else Image.fromarray(pixels)
    file = io.BytesIO()
    (image.quantize(16) if mode == "P" else image).save(file, kind, **options)
    return file.getvalue()


@cache
def unreadable_images() -> dict[str, bytes]:
    """Return files that no command may use, by name."""
    files = {**_damaged(), **_of_other_kinds(), **false_headers(), **_wrong_numbers()}
    for suffix, kind in FORMATS.items():
        content = encoded(kind)
        files[f"truncated-half.{suffix}"] = content[: len(content) // 2]
        files[f"truncated-header.{suffix}"] = content[:10]
        files[f"random-after-signature.{suffix}"] = content[:8] + np.random.default_rng(1).bytes(500)
    return files


def any_images() -> dict[str, bytes]:
    """Return files that a command may read or leave out, as long as it does so within its limits."""
    loud = struct.pack(">I", 0) + b"IEND"
    gif = encoded("GIF", "P")
    frame = gif[_first_frame(gif) : -1]
    jpeg = encoded("JPEG")
    orientation = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\xff\xff\0\0\x08\0\0\0"  # a loop, and 65535
    flat = io.BytesIO()
    Image.new("L", (8000, 8000)).save(flat, "JPEG", progressive=True)
    return {
        "64-megapixels.png": png(8000, 8000, 8, 6),
        "64-megapixels-16-bits.png": png(8000, 8000, 16, 6),
        "one-row.png": png(1_000_000, 1, 1, 0),
        "one-column.png": png(1, 1_000_000, 1, 0),
        "bytes-after-end.png": encoded("PNG") + loud * 100_000,
        "many-chunks.png": png(8, 8, extra=png_chunk(b"tIME", bytes(7)) * 50_000),
        "text-bomb.png": png(8, 8, extra=png_chunk(b"zTXt", b"a\0\0" + zeros_deflated(2**30))),
        "profile-bomb.png": png(8, 8, extra=png_chunk(b"iCCP", b"a\0\0" + zeros_deflated(2**30))),
        "many-frames.gif": gif[:-1] + frame * 5_000 + b"\x3b",
        "exif-loop.jpg": jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(orientation) + 2) + orientation + jpeg[2:],
        "many-scans.jpg": _repeated_scans(flat.getvalue(), 5_000),
        "black-float64.tif": tiff(
            8000, 8000, zeros_deflated(8 * 8000 * 100), bits=(64,), sample_format=3, compression=8, strips=80
        ),
        "one-sample-of-64-bits.tif": tiff(4, 4, bytes(128), bits=(64,)),
        "fewer-rows-than-said.png": png(4000, 4000, data=zeros_deflated(4001)),
        "deep-xml.tif": tiff(16, 16, bytes(256), tags={270: ("B", b"<OME>" + b"<a>" * 200_000 + b"\0")}),
        "pages-in-other-files.tif": tiff(16, 16, bytes(256), tags={270: ("B", OTHER_FILE)}),
        "no-strips.tif": tiff(16, 16, b"", tags={273: ("I", (0,)), 279: ("I", (0,))}),
        "range-beyond-float32.tif": tiff(
            2, 2, np.array([3e38, -3e38, 0, 0], "<f4").tobytes(), bits=(32,), sample_format=3
        ),
        "one-bit.tif": tiff(16, 16, bytes(32), bits=(1,)),
    }


def huge_tiff(side: int = 15_000) -> bytes:
    """Return a small TIFF file that decodes to gigabytes: 15,000 x 15,000 floating-point numbers of 64 bits by default.

    All strips share the same few kilobytes.
    """
    rows = 100
    return tiff(
        side, side, zeros_deflated(8 * side * rows), bits=(64,), sample_format=3, compression=8, strips=side // rows
    )


def _first_frame(gif: bytes) -> int:
    """Return the position of the first frame, after the palette and the extensions."""
    position = 13 + (3 << (gif[10] & 7) + 1 if gif[10] & 0x80 else 0)
    while gif[position] == 0x21:
        position += 2
        while gif[position]:
            position += 1 + gif[position]
        position += 1
    return position


def _repeated_scans(jpeg: bytes, count: int) -> bytes:
    """Repeat the last scan of a progressive JPEG file. Each repetition passes over all pixels."""
    start = jpeg.rindex(b"\xff\xda")
    return jpeg[:start] + jpeg[start:-2] * count + jpeg[-2:]


def _damaged() -> dict[str, bytes]:
    good = encoded("PNG")
    return {
        "empty.png": b"",
        "one-byte.png": b"\x89",
        "zeros.jpg": bytes(4096),
        "text.jpg": b"this is no image\n" * 50,
        "web-page.png": b"<!DOCTYPE html><html><body>404</body></html>",
        "wrong-checksum.png": good[:29] + b"\0\0\0\0" + good[33:],
        "header-only.png": good[:33],
        "no-pixels.png": png(8, 8, data=b""),
        "bad-compression.png": png(8, 8, data=b"\x78\x9c" + b"\xff" * 50),
        "zero-width.png": png(0, 8, data=b""),
    }


def _of_other_kinds() -> dict[str, bytes]:
    """Formats that Pillow decodes, or gives to other programs, under the suffix of a supported format."""
    files = {f"a-{kind.lower()}-file.png": encoded(kind) for kind in ("PPM", "PCX", "ICO", "SGI", "TGA", "DDS")}
    return files | {
        "postscript.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n",
        "postscript-in-dos.png": struct.pack("<IIIIIIIH", 0xC6D3D0C5, 30, 90, 0, 0, 0, 0, 0xFFFF)
        + b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n",
        "drawing.png": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
        "document.png": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n",
        "program.png": b"\x7fELF" + bytes(200),
        "pickle.png": b"\x80\x04\x95\x20\0\0\0\0\0\0\0\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
    }


@cache
def false_headers() -> dict[str, bytes]:
    """Files whose headers promise more than the files hold, or more than any memory holds."""
    bmp, gif, jpeg, webp = (encoded(kind) for kind in ("BMP", "GIF", "JPEG", "WEBP"))
    frame_header = jpeg.index(b"\xff\xc0") + 5
    frame = _first_frame(gif)
    extended = b"VP8X" + struct.pack("<IB3x", 10, 0) + b"\xfe\xff\x3f" * 2  # a canvas of 4,194,303 x 4,194,303
    return {
        "billions-of-pixels.png": png(2**31 - 1, 2**31 - 1, data=zeros_deflated(100)),
        "400-megapixels.png": png(20_000, 20_000, 1, 0),
        "huge-chunk-length.png": png(8, 8)[:33] + b"\xff\xff\xff\xffIDAT" + bytes(20),
        "huge-screen.gif": gif[:6] + b"\xff\xff\xff\xff" + gif[10:],
        "frame-beyond-screen.gif": gif[: frame + 5] + b"\xff\xff\xff\xff" + gif[frame + 9 :],
        "huge.jpg": jpeg[:frame_header] + b"\xff\xdc\xff\xdc" + jpeg[frame_header + 4 :],
        "huge.bmp": bmp[:18] + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + bmp[26:],
        "huge-and-upside-down.bmp": bmp[:18] + struct.pack("<ii", 2**30, -(2**31)) + bmp[26:],
        "negative-width.bmp": bmp[:18] + struct.pack("<ii", -16, 16) + bmp[26:],
        "huge-palette.bmp": bmp[:28] + struct.pack("<H", 8) + bmp[30:46] + b"\xff\xff\xff\x7f" + bmp[50:],
        "huge.webp": b"RIFF" + struct.pack("<I", 4 + len(extended) + len(webp) - 12) + b"WEBP" + extended + webp[12:],
        "gigabytes.tif": huge_tiff(),
        "two-billion-pixels.tif": tiff(2**31 - 1, 1, bytes(64)),
        "square-of-billions.tif": tiff(2**32 - 1, 2**32 - 1, bytes(64)),
        "page-loop.tif": tiff(4, 4, bytes(16), next_page=24, strips=1),
        "many-pages.tif": tiff(4, 4, bytes(16), pages=30_000),
        "strips-beyond-end.tif": tiff(16, 16, b"ab", tags={273: ("I", (2**31,)), 279: ("I", (2**31,))}),
        "no-rows.tif": tiff(16, 0, bytes(16)),
        "65,535-samples.tif": tiff(100, 100, bytes(64), tags={277: ("H", (65535,))}),
        "no-bits.tif": tiff(16, 16, bytes(256), bits=(0,)),
        "unknown-compression.tif": tiff(16, 16, bytes(256), compression=54321),
        "compressed-bomb.tif": tiff(16, 16, zeros_deflated(2**31), compression=8),
    }


OTHER_FILE = (
    b'<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1">'
    b'<Image ID="I:0">'
    b'<Pixels DimensionOrder="XYCZT" ID="P:0" SizeC="1" SizeT="1" SizeX="16" SizeY="16" SizeZ="2" Type="uint8">'
    b'<TiffData IFD="0" FirstZ="1"><UUID FileName="pipe.tif">urn:uuid:2</UUID></TiffData></Pixels></Image></OME>\0'
)
"""A description that says that the second page is in another file, which is a named pipe in the tests."""


def _wrong_numbers() -> dict[str, bytes]:
    def floats(*values: float, kind: str = "f4", **options: object) -> bytes:
        pixels = np.zeros(16, kind)
        pixels[: len(values)] = values
        return tiff(4, 4, pixels.tobytes(), bits=(8 * pixels.itemsize,), **{"sample_format": 3, **options})

    return {
        "nan.tif": floats(np.nan),
        "infinity.tif": floats(1, np.inf),
        "all-nan.tif": floats(*[np.nan] * 16),
        "beyond-float32.tif": floats(1e300, kind="f8"),
        "complex.tif": floats(1, kind="c8", sample_format=6),
        "negative-integers.tif": floats(-5, kind="i4", sample_format=2),
        "above-16-bits.tif": floats(2**31, kind="u4", sample_format=1),
    }
