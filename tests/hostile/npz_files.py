"""Files of NumPy arrays that are damaged, hostile or wrong."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np

from hostile.binary_formats import npy, zip_bomb
from hostile.special_files import make_all_special

NUM_IMAGES = 18
LABELS = np.arange(NUM_IMAGES) % 3
IMAGES = np.random.default_rng(0).integers(0, 256, (NUM_IMAGES, 8, 8), dtype=np.uint8)


class Attack:
    """An object that creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def _zip(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _arrays(images: np.ndarray = IMAGES, labels: np.ndarray = LABELS, **others: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, images=images, labels=labels, **others)
    return file.getvalue()


def _array_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def refused_arrays(marker: Path) -> dict[str, bytes]:
    """Return files that no command may use, by name.

    Args:
        marker: A path that would be created if a file were unpickled.
    """
    good, labels = _arrays(), _array_bytes(LABELS)
    attack = np.empty(NUM_IMAGES, object)
    attack[:] = [Attack(marker)] * NUM_IMAGES
    objects = io.BytesIO()
    np.savez(objects, images=IMAGES, labels=attack)
    nan_labels = np.where(LABELS == 0, np.nan, LABELS)

    def header(shape: object, **options: str) -> bytes:
        return _zip({"images.npy": npy(shape, **options), "labels.npy": labels})

    encrypted = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[good.index(signature) + offset] |= 1
    unknown_method = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        unknown_method[good.index(signature) + offset] = 99
    return {
        "empty": b"",
        "text": b"images",
        "only-end": b"PK\x05\x06" + bytes(18),
        "truncated": good[: len(good) // 2],
        "damaged": good[:200] + b"\xff" * 50 + good[250:],
        "encrypted": bytes(encrypted),
        "unknown-compression": bytes(unknown_method),
        "pickle": pickle.dumps(Attack(marker)),
        "objects": objects.getvalue(),
        "single-array": _array_bytes(IMAGES),
        "no-arrays": _zip({}),
        "text-in-zip": _zip({"images.npy": b"hello", "labels.npy": b"hello"}),
        "no-labels": _zip({"images.npy": _array_bytes(IMAGES)}),
        "terabyte-in-header": header((18, 10**6, 10**6)),
        "overflow-in-header": header((18, 2**62, 2**62)),
        "negative-in-header": header((-18, 8, 8)),
        "expression-in-header": header("__import__('os').getcwd()"),
        "nested-header": header("(" * 5_000 + ")" * 5_000),
        "long-header": header("(" + "1," * 25_000 + ")"),
        "unknown-type-in-header": header((18, 8, 8), dtype="|Z9"),
        "object-in-header": header((18, 8, 8), dtype="|O"),
        "nan-labels": _arrays(labels=nan_labels),
        "complex-labels": _arrays(labels=LABELS * 1j),
        "one-class": _arrays(labels=LABELS * 0),
        "fewer-labels": _arrays(labels=LABELS[:5]),
        "label-matrix": _arrays(labels=np.eye(3)[LABELS]),
        "no-images": _arrays(IMAGES[:0], LABELS[:0]),
        "no-pixels": _arrays(IMAGES[:, :0]),
        "two-dimensions": _arrays(IMAGES.reshape(NUM_IMAGES, -1)),
        "five-dimensions": _arrays(IMAGES[..., None, None]),
        "complex-images": _arrays(IMAGES.astype(complex)),
        "text-images": _arrays(IMAGES.astype(str)),
        "structured-images": _arrays(np.zeros((NUM_IMAGES, 8, 8), [("a", "u1"), ("b", "f4")])),
        "dates-as-images": _arrays(np.zeros((NUM_IMAGES, 8, 8), "M8[s]")),
        "channels-first": _arrays(np.repeat(IMAGES[:, None], 3, axis=1).repeat(4, 2).repeat(4, 3)),
        "nan-pixels": _arrays(np.full(IMAGES.shape, np.nan)),
        "infinite-pixels": _arrays(np.full(IMAGES.shape, np.inf)),
        "negative-pixels": _arrays(IMAGES.astype(int) - 300),
        "pixels-above-one": _arrays(IMAGES.astype(float)),
        "duplicate-class-names": _arrays(class_names=np.array(["x", "x", "y"])),
        "too-few-class-names": _arrays(class_names=np.array(["x", "y"])),
    }


def any_arrays() -> dict[str, bytes]:
    """Return files that are odd but may be used."""
    bytes_labels = np.array([b"a", b"b", b"c"])[LABELS]
    return {
        "fractional-labels": _arrays(labels=LABELS + 0.5),
        "bytes-labels": _arrays(labels=bytes_labels),
        "control-characters": _arrays(class_names=np.array(["\x1b[31m", "\0", "\r\n"])),
        "many-members": _zip(
            {"images.npy": _array_bytes(IMAGES), "labels.npy": _array_bytes(LABELS)}
            | {f"{number}.npy": b"x" for number in range(20_000)}
        ),
        "huge-labels": _arrays(labels=LABELS.astype(np.uint64) + np.uint64(2**64 - 4)),
        "fortran-order": _arrays(np.asfortranarray(IMAGES)),
        "many-channels": _arrays(np.repeat(IMAGES[..., None], 300, axis=3)),
        "one-pixel": _arrays(IMAGES[:, :1, :1]),
        "long-and-thin": _arrays(np.zeros((NUM_IMAGES, 1, 20_000), np.uint8)),
    }


def write_bombs(folder: Path) -> dict[str, Path]:
    """Write files of a few megabytes that unpack to 3 GB, of which commands may not use the memory."""
    labels = _array_bytes(LABELS)
    side = 13_000  # 18 x 13,000 x 13,000 bytes = 3 GB
    images = npy((NUM_IMAGES, side, side))
    zip_bomb(folder / "images.npz", {"images.npy": (images, NUM_IMAGES * side**2), "labels.npy": (labels, 0)})
    small = npy((NUM_IMAGES, 8, 8), data=IMAGES.tobytes())
    zip_bomb(folder / "longer-than-header.npz", {"images.npy": (small, 3 * 2**30), "labels.npy": (labels, 0)})
    wide = npy((NUM_IMAGES, 4), "<U10000000", b"")
    zip_bomb(folder / "labels.npz", {"images.npy": (small, 0), "labels.npy": (wide, 2**30)})
    return {name: folder / f"{name}.npz" for name in ("images", "longer-than-header", "labels")}


def write_unused_bomb(folder: Path) -> Path:
    """Write a good file with one more array, of 3 GB, that no command needs."""
    labels, small = _array_bytes(LABELS), _array_bytes(IMAGES)
    zip_bomb(
        folder / "unused.npz",
        {"images.npy": (small, 0), "labels.npy": (labels, 0), "z.npy": (npy((3 * 2**30,)), 3 * 2**30)},
    )
    return folder / "unused.npz"


def write_special_arrays(folder: Path) -> list[Path]:
    """Write .npz files that are not regular files, or have holes."""
    return make_all_special(folder, ".npz", ("pipe", "device", "itself", "directory", "hole"))
