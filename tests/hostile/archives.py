"""Zip archives and lists of paths that are damaged, hostile or wrong, in place of image files."""

import io
import struct
import zipfile
from pathlib import Path

from hostile.binary_formats import png, zip_bomb
from hostile.image_files import encoded
from hostile.special_files import make_all_special

GIGABYTE = 2**30


def _zip(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _with_field(content: bytes, offset: int, kind: str, value: int) -> bytes:
    """Change a field of the first entry of the table of contents."""
    changed = bytearray(content)
    struct.pack_into(kind, changed, content.index(b"PK\x01\x02") + offset, value)
    return bytes(changed)


def refused_archives() -> dict[str, bytes]:
    """Return archives of which no image can be used, by name."""
    image = encoded("PNG", "L")
    good = _zip({"in.png": image})
    end = good.index(b"PK\x05\x06")
    inner = _zip({"1.png": image})
    return {
        "empty": b"",
        "text": b"no archive",
        "an-image": image,
        "only-end": b"PK\x05\x06" + bytes(18),
        "truncated": good[: len(good) // 2],
        "no-images": _zip({"notes.txt": b"x", "folder/": b"", "inner.zip": inner}),
        "encrypted": _with_field(good, 8, "<H", 1),
        "unknown-compression": _with_field(good, 10, "<H", 99),
        "size-of-4-gigabytes": _with_field(good, 24, "<I", 2**32 - 2),
        "size-of-one-byte": _with_field(good, 24, "<I", 1),
        "place-beyond-the-end": _with_field(good, 42, "<I", 10**9),
        "contents-of-4-gigabytes": good[: end + 12] + b"\xfe\xff\xff\xff" + good[end + 16 :],
        "contents-before-the-start": good[: end + 16] + b"\xff\xff\xff\x7f" + good[end + 20 :],
        "names-of-broken-files": _zip({"../up\x1b[31m.png": b"x", "/etc/passwd.png": b"x", "a\nb.png": b"x"}),
        "pixels-bomb": _zip({"bomb.png": png(30_000, 30_000)}),
    }


def any_archives() -> dict[str, bytes]:
    """Return archives that are odd but hold images that may be used."""
    image = encoded("PNG", "L")
    return {
        "names-above": _zip({"../../../up.png": image, "/root/absolute.png": image, "C:\\x.png": image}),
        "deep": _zip({"d/" * 10_000 + "1.png": image}),
        "many-files": _zip({f"{number}.txt": b"" for number in range(20_000)} | {"1.png": image}, zipfile.ZIP_STORED),
        "macos": _zip({"__MACOSX/._1.png": b"x", ".hidden.png": b"x", "1.png": image}),
    }


def write_bomb_archives(folder: Path) -> list[Path]:
    """Write small archives with gigabytes in them."""
    header = png(100, 100)[:60]
    zip_bomb(folder / "one-bomb.zip", {"bomb.png": (header, 3 * GIGABYTE)})
    zip_bomb(folder / "many-bombs.zip", {f"{number}.png": (header, GIGABYTE // 4) for number in range(50)})
    return [folder / "one-bomb.zip", folder / "many-bombs.zip"]


def write_special_archives(folder: Path) -> list[Path]:
    """Write archives that are not regular files, or have holes."""
    return make_all_special(folder, ".zip", ("pipe", "device", "itself", "to-nothing", "hole"))


def refused_lists() -> dict[str, bytes]:
    """Return lists of which no entry can be used, by name."""
    return {
        "empty": b"",
        "blank": b"\n\r\n\n",
        "nul": bytes(10_000),
        "random": bytes(range(256)) * 40,
        "utf-16": "images/a/000.png\n".encode("utf-16"),
        "one-long-line": b"x" * 20_000_000,
        "long-entries": (b"y" * 100_000 + b"\0") * 20,
        "missing": b"nothing.png\nnothing/at/all.png\n",
        "special": b"pipe.zip\ndevice.zip\nitself.zip\n/dev/zero\n",
        "list-of-itself": b"list-of-itself.txt\n",
        "control-characters": b"\x1b]0;title\x07.png\n[bold].png\n",
    }


def write_special_lists(folder: Path) -> list[Path]:
    """Write lists that are not regular files, or have holes."""
    return make_all_special(folder, ".txt", ("pipe", "device", "itself", "to-nothing", "hole"))
