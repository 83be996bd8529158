"""The record of a finished bulk prediction, ``_manifest.json``: which files there are, and how many images each has."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from tigranet.workflows.bulk_prediction.part_predictor import PartAnswer, read_part_answer
from tigranet.workflows.bulk_prediction.plan import FORMAT, Plan, part_name

MANIFEST = "_manifest.json"
"""Name of the file. It is written last, so a folder that has it is complete."""
CHECKING_THREADS = 16
"""Number of threads that look at files of answers, most of which wait for the disk or a store."""


def finished_parts(plan: Plan, names: Iterable[str]) -> dict[int, PartAnswer]:
    """Find the parts that are finished: their file is complete, belongs to the plan, and has a row for each image.

    Args:
        plan: The plan.
        names: Names of the files in the folder.

    Returns:
        What is recorded about the finished parts, by number. Parts with a damaged file are not among them.

    Raises:
        ValueError: If a file belongs to another plan, or to no part.
        OSError: If a file cannot be read.
    """
    present = {name for name in names if not name.startswith("_")}
    planned = [(number, part.images) for number, part in plan.numbered_parts() if part_name(number) in present]
    if foreign := present - {part_name(number) for number, _ in planned}:
        raise ValueError(
            f"'{plan.folder.address(min(foreign))}' is not a file of answers of the plan in this folder: move it away, "
            "or use another output folder"
        )

    def check(numbered: tuple[int, int | None]) -> PartAnswer | None:
        number, images = numbered
        answer = read_part_answer(plan.folder, number, plan.sha256)
        return answer if answer is not None and images in (None, answer.images) else None

    with ThreadPoolExecutor(CHECKING_THREADS) as pool:
        return {answer.number: answer for answer in pool.map(check, planned) if answer is not None}


def write_manifest(plan: Plan, answers: Mapping[int, PartAnswer]) -> None:
    """Check that each image of the plan has exactly one row, and write the manifest.

    Args:
        plan: The plan.
        answers: What is recorded about each part, by number.

    Raises:
        RuntimeError: If the answers are not those of all parts, or have another number of images.
        OSError: If the manifest cannot be written.
    """
    images = sum(answer.images for answer in answers.values())
    wrong = [
        number
        for number, part in plan.numbered_parts()
        if number not in answers or part.images not in (None, answers[number].images)
    ]
    if wrong or len(answers) != plan.parts:
        raise RuntimeError(
            f"'{plan.folder.location}' is not complete: it has {images:,} images in {len(answers)} parts, expected "
            f"{plan.images} in {plan.parts}; the wrong parts begin with {wrong[:5]}"
        )
    values = {
        "format": FORMAT,
        **asdict(plan.identity),
        "plan_sha256": plan.sha256,
        "images": images,
        "unreadable": sum(answer.unreadable for answer in answers.values()),
        "parts": [
            {"file": part_name(number), "images": answers[number].images, "unreadable": answers[number].unreadable}
            for number in sorted(answers)
        ],
    }
    plan.folder.write(MANIFEST, json.dumps(values, indent=1).encode() + b"\n")
