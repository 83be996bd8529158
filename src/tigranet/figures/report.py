"""The report as one self-contained HTML page, with its numbers in a JSON file beside it."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from torch import Tensor

from tigranet.atomic_files import atomic_write
from tigranet.data.augment.rigid import Padding
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.answer_examples import Answer
from tigranet.evaluation.answers_by_angle import TURN_ANGLES, AnswersByAngle
from tigranet.evaluation.class_report import Mistake
from tigranet.evaluation.next_steps import next_steps
from tigranet.evaluation.predictions import names_of_answers
from tigranet.evaluation.report import Report
from tigranet.figures.confusion import MAX_DRAWN_CLASSES, classes_with_most_errors
from tigranet.figures.report_figures import report_figures
from tigranet.figures.report_pictures import evidence_uri, thumbnail_uri, turned_uri
from tigranet.figures.report_tables import (
    JSON_NAME,
    MAX_TABLE_ROWS,
    accuracy_cards,
    accuracy_rows,
    calibration_rows,
    change_rows,
    class_csv_uri,
    class_rows,
    most_frequent_classes,
    provenance_rows,
    rejection_rows,
    shown_note,
    summary_sentences,
    unmoved_images,
)
from tigranet.figures.report_text import breakable, page_name, printable

PAGE_NAME = "report.html"
"""Name of the page."""
TEMPLATES = Path(__file__).parent / "report_page"
"""Folder of the parts of the page in the package."""
PADDING_TEXT: dict[Padding, str] = {
    "zeros": "zeros (black)",
    "reflection": "a mirror image of the border",
    "border": "the nearest border pixel",
    "background": "the background",
}
"""How the page describes the pixels that enter a transformed image from outside, by the name of the padding."""
FILE_PARTS = 2
"""Number of last parts of a path that are shown: usually the folder of the class, and the name of the file."""
UNDEFINED = "\N{EN DASH}"
"""Shown instead of a ratio whose denominator is zero."""


def save_report(
    folder: Path, report: Report, test: LabelledImages, evidence: Mapping[int, Tensor] | None = None
) -> Path:
    """Write ``report.html`` and ``report.json``. Older files are replaced only when both new ones are complete.

    Args:
        folder: Output folder. It is created if it does not exist.
        report: The measurements.
        test: The images that were measured: test images, or validation images if there are no test images.
        evidence: Evidence maps for the predictions of some of these images, by the position of the image.

    Returns:
        The path of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = render(report, test, evidence or {})
    values = report.to_json() | {"next_steps": [asdict(step) for step in next_steps(report)]}
    with atomic_write(folder / JSON_NAME) as numbers, atomic_write(folder / PAGE_NAME) as text:
        numbers.write(json.dumps(values, indent=2) + "\n")
        numbers.flush()  # a full disk is noticed here, before the page is replaced
        text.write(page)
    return folder / PAGE_NAME


def render(report: Report, test: LabelledImages, evidence: Mapping[int, Tensor] = MappingProxyType({})) -> str:
    """Render the report as an HTML page.

    The page loads nothing and runs one script, its own, which is allowed by its hash. Bytes of file names and class
    names that are not UTF-8 are shown as replacement characters, and control characters are written out. Of many
    classes, some are shown, and the page says how many.

    Args:
        report: The measurements.
        test: The images that were measured: test images, or validation images if there are no test images.
        evidence: Evidence maps for the predictions of some of these images, by the position of the image.

    Returns:
        The text of the page.
    """
    network, data = report.subjects[0], report.data
    classes, class_count = classes_with_most_errors(report.confusion, MAX_TABLE_ROWS), len(data.class_names)
    frequent = most_frequent_classes(data.images)
    script = _read("script.js")

    def picture(answer: Answer | Mistake) -> dict[str, Any]:
        file = answer.file and os.fsencode(answer.file).decode(errors="replace")
        short_file = file and "/".join(Path(file).parts[-FILE_PARTS:])
        return asdict(answer) | {
            "uri": thumbnail_uri(test.images[answer.image]),
            "file": file,
            "short_file": short_file,
        }

    return (
        _environment()
        .get_template("page.html")
        .render(
            style=Markup(_read("style.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=data,
            model=report.made.get("model"),
            boundary=report.made.get("boundary"),
            subjects=report.subjects,
            part=report.part,
            notice=report.notice(),
            size_notice=report.size_notice(),
            image_count=network.robustness.images,
            unmoved_images=unmoved_images(report),
            curve_images=network.by_angle.images,
            change_images=report.change_images,
            padding=PADDING_TEXT[data.outside],
            summary=summary_sentences(report),
            cards=accuracy_cards(network),
            turn_angles=TURN_ANGLES,
            turned=[_turned_image(report, each, test) for each in report.turned],
            accuracy_rows=accuracy_rows(report.subjects),
            draws=max(accuracy.draws for accuracy in network.robustness.moved.values()),
            figures=report_figures(report),
            change_rows=change_rows(report.subjects),
            drawn_note=shown_note(
                min(class_count, MAX_DRAWN_CLASSES), class_count, "drawn, those with the most errors"
            ),
            classes=class_rows(report, classes),
            classes_note=shown_note(len(classes), class_count, "shown, those with the most errors"),
            class_csv=class_csv_uri(report),
            examples=[
                {
                    "name": each.name,
                    "right": [picture(answer) for answer in each.right],
                    "wrong": [picture(answer) for answer in each.wrong],
                    "wrong_count": each.wrong_count,
                }
                for each in report.examples
            ],
            examples_note=shown_note(len(report.examples), class_count, "shown, those with the most errors"),
            least_certain=[picture(answer) for answer in report.least_certain],
            calibration=report.calibration,
            calibration_rows=calibration_rows(report.calibration, report.data.unmoved),
            rejection_rows=rejection_rows(report),
            history=report.history,
            error_count=report.mistakes,
            errors=[
                picture(mistake) | {"evidence": evidence_uri(test.images[mistake.image], evidence.get(mistake.image))}
                for mistake in report.confident_mistakes
            ],
            class_counts=[
                {"name": data.class_names[label], "counts": [counts[label] for counts in data.images.values()]}
                for label in frequent
            ],
            counts_note=shown_note(len(frequent), class_count, "shown, the most frequent ones"),
            steps=next_steps(report),
            provenance=provenance_rows(report),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
    )
    environment.filters["per_cent"] = lambda fraction: UNDEFINED if fraction is None else f"{100 * fraction:.1f}"
    environment.filters["name"] = breakable
    environment.filters["plain_name"] = page_name
    return environment


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _turned_image(report: Report, turned: AnswersByAngle, test: LabelledImages) -> dict[str, Any]:
    """Return an image at all angles, and for each network its answers as the script of the page shows them."""
    names = names_of_answers(report.data.class_names)
    answers = {
        network: [
            [page_name(names[label]), f"{100 * probability:.0f}", label == turned.truth]
            for label, probability in zip(turned.classes[network], turned.probabilities[network], strict=True)
        ]
        for network in turned.classes
    }
    return {
        "uri": turned_uri(test.images[turned.image], TURN_ANGLES, report.data.outside),
        "image": turned.image,
        "truth": names[turned.truth],
        "answers": [
            {"network": network, "by_angle": values, "text": json.dumps(values)} for network, values in answers.items()
        ],
    }
