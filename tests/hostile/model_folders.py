"""Model folders, checkpoints and records of trainings that are damaged, hostile or wrong."""

import json
import pickle
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hostile.npz_files import Attack
from hostile.special_files import make_special
from tigranet import TIGraNet
from tigranet.model_folder import CHECKPOINTS, CONFIG, LAST_CHECKPOINT, UNKNOWN_DETECTOR, WEIGHTS

TRAINING = "training.json"


def save_good_model(folder: Path) -> Path:
    """Save a small network with random weights, for images of 8 x 8 pixels and the classes a, b and c."""
    TIGraNet("SC[2,1]-DP[9]-S[1]", num_classes=3, class_names=["a", "b", "c"], image_size=8).save_pretrained(folder)
    return folder


def hostile_models(good: Path, folder: Path, marker: Path) -> Iterator[Path]:
    """Write copies of a model with one bad file each.

    Args:
        good: The folder of a good model.
        folder: Where to write the copies.
        marker: A path that would be created if a file were unpickled.
    """
    config = json.loads((good / CONFIG).read_text())
    for name, text in _configs(config).items():
        yield _copy(good, folder / f"config-{name}", CONFIG, text)
    for name, content in _weights((good / WEIGHTS).read_bytes(), marker).items():
        yield _copy(good, folder / f"weights-{name}", WEIGHTS, content)
    for file in (CONFIG, WEIGHTS):
        yield from _not_regular(good, folder, file)


def hostile_detectors(good: Path, folder: Path) -> Iterator[Path]:
    """Write copies of a model with a bad detector of unknown images each."""
    for name, content in {"empty": b"", "text": b"{}", "zeros": bytes(5000), "length": b"\xff" * 100}.items():
        yield _copy(good, folder / f"detector-{name}", UNKNOWN_DETECTOR, content)
    yield _copy(good, folder / "detector-of-weights", UNKNOWN_DETECTOR, (good / WEIGHTS).read_bytes())
    yield from _not_regular(good, folder, UNKNOWN_DETECTOR)


def hostile_records(good: Path, folder: Path) -> Iterator[Path]:
    """Write copies of a model with a bad training.json each."""
    for name, content in _records().items():
        yield _copy(good, folder / f"record-{name}", TRAINING, content)
    yield from _not_regular(good, folder, TRAINING)


def hostile_checkpoints(folder: Path, marker: Path) -> Iterator[Path]:
    """Write output folders of interrupted trainings with a bad checkpoint each."""
    contents = {
        "empty": b"",
        "zeros": bytes(5000),
        "text": b"checkpoint",
        "truncated-zip": b"PK\x03\x04" + bytes(50),
        "empty-zip": b"PK\x05\x06" + bytes(18),
        "pickle": pickle.dumps({"callbacks": Attack(marker)}),
        "old-pickle": pickle.dumps({"callbacks": {"Checkpoints": {"about": "x"}}}, protocol=2),
        "pickled-list": pickle.dumps([1, 2, 3], protocol=2),
        "random": np.random.default_rng(0).bytes(5000),
    }
    for name, content in contents.items():
        (folder / name / CHECKPOINTS).mkdir(parents=True)
        (folder / name / CHECKPOINTS / LAST_CHECKPOINT).write_bytes(content)
        yield folder / name
    for kind in ("pipe", "device", "directory", "hole"):
        (folder / kind / CHECKPOINTS).mkdir(parents=True)
        make_special(folder / kind / CHECKPOINTS / LAST_CHECKPOINT, kind)
        yield folder / kind


def _copy(good: Path, folder: Path, file: str, content: str | bytes) -> Path:
    shutil.copytree(good, folder)
    (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def _not_regular(good: Path, folder: Path, file: str) -> Iterator[Path]:
    for name in ("pipe", "device", "directory", "itself", "hole"):
        target = folder / f"{Path(file).stem}-is-{name}"
        shutil.copytree(good, target)
        (target / file).unlink(missing_ok=True)
        make_special(target / file, name)
        yield target


def _configs(config: dict[str, Any]) -> dict[str, str | bytes]:
    """Return texts in place of ``config.json``."""
    layers = "SC[2,1]-DP[9]-S[1]"
    changes: dict[str, dict[str, Any]] = {
        "hundred-million-classes": {"num_classes": 100_000_000, "class_names": None},
        "no-classes": {"num_classes": 0, "class_names": None},
        "negative-classes": {"num_classes": -3},
        "more-classes-than-names": {"num_classes": 4},
        "classes-as-text": {"num_classes": "3"},
        "classes-as-fraction": {"num_classes": 2.5, "class_names": None},
        "classes-as-truth": {"num_classes": True, "class_names": None},
        "classes-as-nothing": {"num_classes": None},
        "hundred-thousand-layers": {"architecture": "SC[2,1]-" * 100_000 + layers},
        "huge-layer": {"architecture": "SC[1000000000,1]-S[1]"},
        "huge-degree": {"architecture": "SC[1,1000000000]-S[1]"},
        "huge-hidden-layer": {"architecture": layers + "-FC[1000000000]"},
        "huge-hidden-layers": {"architecture": layers + "-FC[200000]" * 5},
        "huge-product": {"architecture": "MC[9999,999]-OP[9999]-MC[9999,999]-S[999]"},
        "huge-statistics": {"architecture": "SC[1,1]-S[1000000000]"},
        "number-of-5,000-digits": {"architecture": f"SC[{'9' * 5_000},1]-S[1]"},
        "unknown-architecture": {"architecture": "resnet"},
        "other-architecture": {"architecture": "SC[3,1]-DP[9]-S[1]"},
        "architecture-as-list": {"architecture": [layers]},
        "architecture-as-number": {"architecture": 7},
        "megabytes-of-architecture": {"architecture": "x" * 5_000_000},
        "billion-channels": {"in_maps": 1_000_000_000},
        "channels-as-list": {"in_maps": [1]},
        "no-channels": {"in_maps": 0},
        "names-as-numbers": {"class_names": [1, 2, 3]},
        "names-as-lists": {"class_names": [["a"], ["b"], ["c"]]},
        "names-as-text": {"class_names": "abc"},
        "names-as-nothing": {"class_names": [None, "b", "c"]},
        "same-names": {"class_names": ["a", "a", "c"]},
        "image-size-zero": {"image_size": 0},
        "image-size-huge": {"image_size": 10**9},
        "image-size-as-text": {"image_size": "8"},
        "image-size-as-list": {"image_size": [8, 8]},
        "unknown-boundary": {"boundary": "open"},
        "boundary-as-object": {"boundary": {}},
        "five-neighbours": {"neighbours": 5},
        "negative-diagonal": {"diagonal": -1},
        "diagonal-as-text": {"diagonal": "1"},
        "unknown-init": {"init": ["paper"]},
        "unknown-ties": {"ties": "none"},
        "span-as-text": {"span": "2"},
        "huge-span": {"span": 10**400},
        "unknown-key": {"colour": "red"},
    }
    changed: dict[str, str | bytes] = {name: json.dumps(config | change) for name, change in changes.items()}
    text = json.dumps(config)
    return changed | {
        "empty": "",
        "text": "hello",
        "truncated": text[: len(text) // 2],
        "list": "[]",
        "nothing": "null",
        "missing-key": json.dumps({key: value for key, value in config.items() if key != "num_classes"}),
        "nested": "[" * 200_000 + "]" * 200_000,
        "nested-objects": '{"a":' * 200_000 + "1" + "}" * 200_000,
        "not-a-number": text.replace('"span": 2.0', '"span": NaN').replace('"diagonal": 1.0', '"diagonal": NaN'),
        "infinity": json.dumps(config | {"span": float("inf")}),
        "digits": text.replace('"num_classes": 3', f'"num_classes": {"9" * 100_000}'),
        "twice": text[:-1] + ', "num_classes": 100000000}',
        "not-utf-8": text.encode() + b"\xff",
        "utf-16": text.encode("utf-16"),
        "only-nul": bytes(1000),
        "million-keys": json.dumps({str(number): number for number in range(500_000)}),
        "lone-surrogate": text.replace('"a"', '"\\ud800"'),
    }


def _weights(content: bytes, marker: Path) -> dict[str, bytes]:
    """Return contents in place of ``model.safetensors``: an 8-byte length, a JSON header, and the numbers."""
    (length,) = struct.unpack("<Q", content[:8])
    header, numbers = json.loads(content[8 : 8 + length]), content[8 + length :]
    name = next(key for key in header if key != "__metadata__")

    def packed(text: bytes, size: int | None = None, data: bytes = numbers) -> bytes:
        return struct.pack("<Q", len(text) if size is None else size) + text + data

    def changed(data: bytes = numbers, **change: Any) -> bytes:
        return packed(json.dumps(header | {name: header[name] | change}).encode(), data=data)

    nan, infinity = (np.full(len(numbers) // 4, value, "<f4").tobytes() for value in (np.nan, -np.inf))
    return {
        "empty": b"",
        "text": b"weights",
        "zeros": bytes(5000),
        "length-only": content[:8],
        "truncated-header": content[:20],
        "truncated": content[:-4],
        "longer": content + bytes(4),
        "header-longer-than-file": packed(content[8 : 8 + length], 2**40),
        "header-of-2**63": packed(content[8 : 8 + length], 2**63),
        "header-of-2**64": packed(content[8 : 8 + length], 2**64 - 1),
        "header-of-nothing": packed(b""),
        "header-not-json": packed(b"{" * 100),
        "header-list": packed(b"[1,2]"),
        "header-nested": packed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "header-not-utf-8": packed(b'{"\xff": 1}'),
        "header-of-99-megabytes": packed(b"{" + b" " * 99_000_000 + b"}"),
        "million-tensors": packed(
            (
                "{"
                + ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(300_000))
                + "}"
            ).encode()
        ),
        "no-tensors": packed(b"{}", data=b""),
        "one-more": packed(
            json.dumps(header | {"other": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
        ),
        "one-less": packed(json.dumps({key: value for key, value in header.items() if key != name}).encode()),
        "offsets-reversed": changed(data_offsets=header[name]["data_offsets"][::-1]),
        "offsets-beyond-end": changed(data_offsets=[0, 2**60]),
        "offsets-negative": changed(data_offsets=[-4, 0]),
        "offsets-as-text": changed(data_offsets="all"),
        "shape-overflow": changed(shape=[2**62, 2**62]),
        "shape-huge": changed(shape=[10**12]),
        "shape-other": changed(shape=[1, *header[name]["shape"]]),
        "type-unknown": changed(dtype="F99"),
        "type-integer": changed(dtype="I32"),
        "metadata-numbers": packed(json.dumps(header | {"__metadata__": {"a": 1}}).encode()),
        "metadata-other": packed(json.dumps(header | {"__metadata__": {"config_sha256": "0" * 64}}).encode()),
        "nan": packed(content[8 : 8 + length], data=nan),
        "infinite": packed(content[8 : 8 + length], data=infinity),
        "pickle": pickle.dumps(Attack(marker)),
    }


def _records() -> dict[str, str | bytes]:
    """Return contents in place of ``training.json``."""
    values: dict[str, Any] = {
        "seed-text": {"seed": "abc"},
        "seed-list": {"seed": [1]},
        "seed-negative": {"seed": -1},
        "seed-huge": {"seed": 10**30},
        "seed-fraction": {"seed": 1.5},
        "seed-nothing": {"seed": None},
        "group-number": {"group": 5},
        "group-no-expression": {"group": "((("},
        "images-text": {"train_images": "many"},
        "images-negative": {"train_images": -5},
        "images-huge": {"train_images": 10**18},
        "hashes-number": {"seen": 5, "tested": "x"},
        "hashes-list": {"seen": [1, 2], "tested": "x"},
        "test-hash-list": {"tested": [1]},
        "recipe-list": {"recipe": [1]},
        "recipe-text": {"recipe": "fast"},
        "a-list": [],
        "a-number": 7,
    }
    return {name: json.dumps(value) for name, value in values.items()} | {
        "empty": "",
        "text": "trained",
        "truncated": '{"seed": 0, "rec',
        "nested": "[" * 200_000,
        "not-utf-8": b'{"seed": "\xff"}',
        "only-nul": bytes(1000),
        "digits": '{"seed": ' + "9" * 100_000 + "}",
        "seed-infinite": '{"seed": Infinity}',
        "seed-overflow": '{"seed": 1e999}',
    }
