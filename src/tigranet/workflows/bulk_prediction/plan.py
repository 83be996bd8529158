"""The plan of a bulk prediction: what is predicted, and which images each part has.

``_plan.jsonl`` has one JSON object per line: what the answers belong to, then the parts, then their number. It is
written before the first part is begun, and never changed. A run that is continued takes the parts from it, so that new
files in the source change nothing.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tigranet.workflows.bulk_prediction.answer_folder import AnswerFolder
from tigranet.workflows.bulk_prediction.parts import Part, part_from_json, part_to_json
from tigranet.workflows.bulk_prediction.source import find_parts

PLAN = "_plan.jsonl"
"""Name of the plan. Programs that read a folder of Parquet files skip names that begin with an underscore."""
FORMAT = 1
"""Version of the format of plans and manifests."""


@dataclass(frozen=True)
class Identity:
    """What answers belong to. A folder of answers is continued only for the same."""

    model: str
    """Name or absolute path of the model."""
    model_sha256: str
    """Checksum of the files of the model that determine the answers."""
    source: tuple[str, ...]
    """Absolute paths or URLs of the images."""
    options: dict[str, Any]
    """Options that change the answers."""

    def require_equal(self, stored: "Identity", folder: str) -> None:
        """Check that a folder has answers of this model for these images.

        Args:
            stored: What the answers in the folder belong to.
            folder: The folder, for the message.

        Raises:
            ValueError: If they belong to something else.
        """
        here, there = self._described(), stored._described()
        if different := [name for name in here if here[name] != there[name]]:
            name = different[0]
            raise ValueError(
                f"'{folder}' has answers for another {name}: {there[name]}, and not {here[name]}. Use another output "
                "folder, or delete this one to begin again"
            )

    def _described(self) -> dict[str, str]:
        return {
            "model": f"'{self.model}' with the checksum {self.model_sha256[:16]}",
            "source": ", ".join(map(repr, self.source)),
            "set of options": json.dumps(self.options, sort_keys=True),
        }


@dataclass(frozen=True)
class Plan:
    """A plan that is stored in the folder of the answers."""

    folder: AnswerFolder
    identity: Identity
    sha256: str
    """Checksum of the stored plan, which each file of answers repeats."""
    parts: int
    """Number of parts."""
    images: int | None
    """Number of images, or None if there are tar files in a store, whose images are not counted."""

    def numbered_parts(self) -> Iterator[tuple[int, Part]]:
        """Read the parts one after the other.

        Yields:
            The number of the part, from 0 on, and the part.
        """
        with self.folder.open(PLAN) as file:
            next(file)
            for number, line in zip(range(self.parts), file, strict=False):
                yield number, part_from_json(json.loads(line))


def part_name(number: int) -> str:
    """Return the name of the file with the answers of a part.

    Args:
        number: Number of the part.

    Example:
        >>> part_name(7)
        'part-000007.parquet'
    """
    return f"part-{number:06d}.parquet"


def make_plan(folder: AnswerFolder, identity: Identity, part_size: int) -> Plan:
    """Divide the images into parts, and store the plan.

    Args:
        folder: The folder of the answers.
        identity: What the answers belong to.
        part_size: Number of images in a part.

    Returns:
        The plan.

    Raises:
        ValueError: If there are no images, or if a source cannot be divided.
        OSError: If a source cannot be read, or the plan cannot be written.
    """
    parts = 0
    images: int | None = 0
    with folder.writing(PLAN) as file:
        file.write(_line({"format": FORMAT, **asdict(identity)}))
        for part in find_parts(identity.source, part_size):
            file.write(_line(part_to_json(part)))
            parts += 1
            images = None if images is None or part.images is None else images + part.images
        if not parts or images == 0:
            raise ValueError(f"there are no images in {', '.join(map(repr, identity.source))}")
        file.write(_line({"parts": parts, "images": images}))
    return read_plan(folder)


def read_plan(folder: AnswerFolder) -> Plan:
    """Read and check the plan in a folder of answers.

    Args:
        folder: The folder.

    Returns:
        The plan.

    Raises:
        ValueError: If it is damaged, or was written by a later version.
        OSError: If it cannot be read.
    """
    address = folder.address(PLAN)
    digest = hashlib.sha256()
    with folder.open(PLAN) as file:
        first = last = next(file, b"")
        count = 0
        for last in file:
            digest.update(last)
            count += 1
    digest.update(first)
    try:
        header, end = json.loads(first), json.loads(last)
        if header["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, got {header['format']}")
        identity = Identity(header["model"], header["model_sha256"], tuple(header["source"]), header["options"])
        parts, images = int(end["parts"]), end["images"]
        if parts != count - 1:
            raise ValueError(f"expected {parts} parts, got {count - 1}")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"'{address}' is not a plan of this version ({error}): delete the folder to begin again"
        ) from None
    return Plan(folder, identity, digest.hexdigest(), parts, images)


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"
