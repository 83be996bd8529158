"""CSV tables that are damaged, hostile or wrong. The image files that they name exist, in the folder ``images``."""

from pathlib import Path

from hostile.special_files import make_all_special

ROWS = "".join(f"images/{name}/{number:03d}.png,{name}\n" for name in "abc" for number in range(6))
"""Rows of a good table."""
GOOD = "path,label\n" + ROWS


def refused_tables() -> dict[str, tuple[bytes, str]]:
    """Return tables that no command may use, by name, with a text that the message must contain."""
    texts = {
        "empty": ("", ""),
        "only-header": ("path,label\n", ""),
        "white-space": ("  \n\n   \n", ""),
        "no-label-column": ("path,colour\n" + ROWS, "label"),
        "no-path-column": ("where,label\n" + ROWS, "path"),
        "two-label-columns": ("path,label,label\n" + ROWS.replace("\n", ",x\n"), "label"),
        "one-class": ("path,label\n" + "images/a/000.png,a\n" * 5, ""),
        "nul-in-path": (GOOD + "images/a\0/000.png,a\n", "line 20"),
        "nul-in-label": (GOOD + "images/a/000.png,a\0\n", "line 20"),
        "no-label": (GOOD + "images/a/000.png,\n", "line 20"),
        "no-path": (GOOD + ",a\n", "line 20"),
        "missing-column": (GOOD + "images/a/000.png\n", "line 20"),
        "nan-label": (GOOD + "images/a/000.png,   \n", "line 20"),
        "unknown-part": (
            "path,label,part\n" + ROWS.replace("\n", ",train\n") + "images/a/000.png,a,later\n",
            "line 20",
        ),
        "no-training-part": ("path,label,part\n" + ROWS.replace("\n", ",test\n"), "train"),
        "field-of-a-megabyte": (GOOD + "images/a/000.png," + "x" * 10**6 + "\n", ""),
        "open-quotation": (GOOD + 'images/a/000.png,"a\n' + ROWS * 5_000, ""),
        "million-columns": ("path,label" + ",x" * 10**6 + "\n" + ROWS, ""),
        "line-of-20-megabytes": ("x" * 20_000_000, ""),
    }
    files = {name: (text.encode(), mention) for name, (text, mention) in texts.items()}
    return files | {
        "utf-16": (GOOD.encode("utf-16"), "UTF-8"),
        "latin-1": ((GOOD + "images/a/000.png,é\n").encode("latin-1"), "UTF-8"),
        "random-bytes": (bytes(range(256)) * 40, ""),
        "only-nul": (bytes(10_000), ""),
        "an-image": (b"\x89PNG\r\n\x1a\n" + bytes(2000), ""),
    }


def tables_of_bad_files() -> dict[str, tuple[bytes, str]]:
    """Return good tables that no command may use because of the files, with a text that the message must contain."""
    texts = {
        "missing-files": (ROWS.replace("images", "nothing"), "nothing/a/000.png"),
        "folders-as-files": ("images/a,a\nimages/b,b\nimages/c,c\n", "images/a"),
        "pipes-as-files": ("pipe.png,a\npipe.png,b\n" * 3, "pipe.png"),
        "devices-as-files": ("device.png,a\ndevice.png,b\n" * 3, "device.png"),
        "case-of-classes": (ROWS + "images/a/000.png,A\n", "'A'"),
    }
    return {name: (f"path,label\n{rows}".encode(), mention) for name, (rows, mention) in texts.items()}


def any_tables() -> dict[str, bytes]:
    """Return tables that are odd but may be used."""
    duplicates = GOOD + ROWS * 50
    return {
        "formulas": GOOD.replace(",a\n", ",=1+1\n").replace(",b\n", ",@SUM(A1)\n").encode(),
        "control-characters": GOOD.replace(",a\n", ",\x1b[31mred\n").encode(),
        "markup": GOOD.replace(",a\n", ",[/bold]$x_$\n").encode(),
        "old-line-ends": GOOD.replace("\n", "\r").encode(),
        "byte-order-mark": b"\xef\xbb\xbf" + GOOD.encode(),
        "duplicates": duplicates.encode(),
        "long-label": GOOD.replace(",a\n", f",{'a' * 5000}\n").encode(),
        "paths-above": GOOD.replace("images/a", "../../../../../../../../../../../nothing").encode()
        + b"images/a/000.png,a\n",
        "path-too-long": (GOOD + "x" * 5000 + ".png,a\n").encode(),
        "name-too-long": (GOOD + "x" * 300 + ".png,a\n").encode(),
    }


def write_special_tables(folder: Path) -> list[Path]:
    """Write tables that are not regular files, and the files that the tables name."""
    make_all_special(folder, ".png", ("pipe", "device"))
    return make_all_special(folder, ".csv", ("pipe", "device", "itself", "to-nothing", "hole"))
