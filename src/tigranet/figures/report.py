"""The report as one self-contained HTML page, with its numbers in a JSON file beside it."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from torch import Tensor

from tigranet.atomic_files import atomic_write
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import Accuracy
from tigranet.evaluation.calibration_report import CalibrationReport
from tigranet.evaluation.moved_logits import UPRIGHT
from tigranet.evaluation.report import QUARTERS, Report, Subject
from tigranet.figures.confusion import MAX_DRAWN_CLASSES, classes_with_most_errors, confusion_size, draw_confusion
from tigranet.figures.curves import (
    BASELINE_STYLE,
    NETWORK_STYLE,
    SECOND_NETWORK_STYLE,
    Line,
    draw_against_angle,
    draw_against_shift,
    draw_max_change,
)
from tigranet.figures.evidence_overlay import overlay_evidence
from tigranet.figures.figure_output import inline_svg, png_data_uri
from tigranet.figures.names import shorten
from tigranet.figures.reliability import draw_reliability
from tigranet.terminal_text import escape_control_characters

PAGE_NAME, JSON_NAME = "report.html", "report.json"
PADDING_TEXT = {
    "zeros": "zeros (black)",
    "reflection": "a mirror image of the border",
    "border": "the nearest border pixel",
    "background": "the background",
}
"""How the page describes the pixels that enter a transformed image from outside, by the name of the padding."""
UNDEFINED = "\N{EN DASH}"
"""Shown instead of a ratio whose denominator is zero."""
CURVE_INCHES = (5.0, 3.1)
"""Size of a figure: two fit side by side on a desktop, one on a phone."""
MAX_TABLE_ROWS = 100
"""Largest number of classes in a table of the page. The JSON file has all of them."""
MAX_PAGE_NAME_LENGTH = 120
"""Names in the page are shortened to this many characters."""
QUARTER_TURN_KEY = "turned by 90 degrees"
"""Name of the quarter turn in :class:`~tigranet.evaluation.robustness.Robustness`; the page has its own rows for it."""


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
    with atomic_write(folder / JSON_NAME) as numbers, atomic_write(folder / PAGE_NAME) as text:
        numbers.write(json.dumps(report.to_json(), indent=2) + "\n")
        numbers.flush()  # a full disk is noticed here, before the page is replaced
        text.write(page)
    return folder / PAGE_NAME


def render(report: Report, test: LabelledImages, evidence: Mapping[int, Tensor] = MappingProxyType({})) -> str:
    """Render the report as an HTML page.

    Bytes of file names and class names that are not UTF-8 are shown as replacement characters, and control characters
    are written out. Of many classes, some are shown, and the page says how many.

    Args:
        report: The measurements.
        test: The images that were measured: test images, or validation images if there are no test images.
        evidence: Evidence maps for the predictions of some of these images, by the position of the image.

    Returns:
        The text of the page.
    """
    environment = Environment(
        loader=PackageLoader("tigranet", "figures"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_printable,
    )
    environment.filters["per_cent"] = lambda fraction: UNDEFINED if fraction is None else f"{100 * fraction:.1f}"
    environment.filters["name"] = lambda name: shorten(_replace_undecodable(name), MAX_PAGE_NAME_LENGTH)
    network, data = report.subjects[0], report.data
    classes, class_count = classes_with_most_errors(report.confusion, MAX_TABLE_ROWS), len(data.class_names)
    frequent = _most_frequent_classes(data.images)
    page = environment.get_template("report.html").render(
        data=data,
        model=report.made.get("model"),
        boundary=report.made.get("boundary"),
        subjects=report.subjects,
        part=report.part,
        notice=report.notice(),
        image_count=network.robustness.images,
        curve_images=network.by_angle.images,
        change_images=report.change_images,
        padding=PADDING_TEXT[data.outside],
        summary=_summary(report),
        cards=_cards(network),
        accuracy_rows=_accuracy_rows(report.subjects),
        draws=max(accuracy.draws for accuracy in network.robustness.moved.values()),
        figures=_figures(report),
        change_rows=_change_rows(report.subjects),
        drawn_note=_note(min(class_count, MAX_DRAWN_CLASSES), class_count, "drawn, those with the most errors"),
        classes=[report.classes[label] for label in classes],
        classes_note=_note(len(classes), class_count, "shown, those with the most errors"),
        calibration=report.calibration,
        calibration_rows=_calibration_rows(report.calibration, report.data.unmoved),
        error_count=report.mistakes,
        errors=[
            {
                "uri": png_data_uri(test.images[mistake.image]),
                "evidence": _evidence_uri(test.images[mistake.image], evidence.get(mistake.image)),
                "image": mistake.image,
                "prediction": mistake.answer,
                "truth": mistake.truth,
                "probability": mistake.probability,
                "file": mistake.file and os.fsencode(mistake.file).decode(errors="replace"),
            }
            for mistake in report.confident_mistakes
        ],
        class_counts=[
            {"name": data.class_names[label], "counts": [counts[label] for counts in data.images.values()]}
            for label in frequent
        ],
        counts_note=_note(len(frequent), class_count, "shown, the most frequent ones"),
        provenance=_provenance(report),
    )
    return page


def _summary(report: Report) -> list[str]:
    """Return the two sentences at the top of the page: quarter turns, and random angles."""
    network, images = report.subjects[0], report.subjects[0].robustness.images
    if network.exact():
        quarter_turns = (
            f"Rotating the images by 90, 180 or 270 degrees changes none of the {images} predictions: "
            f"{network.right} are correct at every one of these angles."
        )
    else:
        changed = ", ".join(str(turn.changed) for turn in network.quarter_turns)
        correct = ", ".join(str(turn.right) for turn in network.quarter_turns)
        quarter_turns = (
            f"Rotating the images by 90, 180 and 270 degrees changes {changed} of the {images} predictions: "
            f"{network.right} are correct for {_unmoved_images(report)} and {correct} for rotated images."
        )
    random_angles = f"The accuracy on randomly rotated images is {network.robustness.moved['rotated']}\u00a0%"
    if len(report.subjects) > 1:
        baseline = report.subjects[1].robustness
        random_angles += (
            f"; a plain CNN of the same size, trained on the same images, reaches {baseline.moved['rotated']}\u00a0% "
            f"(on {_unmoved_images(report)}: {network.robustness.upright:.1f}\u00a0% and {baseline.upright:.1f}\u00a0%)"
        )
    return [quarter_turns, f"{random_angles}."]


def _unmoved_images(report: Report) -> str:
    unmoved = report.subjects[0].robustness.unmoved
    return "upright images" if unmoved == "upright" else f"images {unmoved}"


def _cards(network: Subject) -> list[dict[str, str]]:
    """Return the boxes with large numbers: unmoved images, quarter turns, and each random transformation."""
    robustness, images = network.robustness, network.robustness.images
    cards = [
        {
            "title": robustness.unmoved.capitalize(),
            "number": f"{robustness.upright:.1f}",
            "unit": "%",
            "note": f"{network.right} of {images} correct",
        },
        {
            "title": "Rotated by 90°, 180°, 270°",
            "number": " · ".join(dict.fromkeys(f"{100 * turn.right / images:.1f}" for turn in network.quarter_turns)),
            "unit": "%",
            "note": ", ".join(str(turn.right) for turn in network.quarter_turns) + f" of {images} correct",
        },
    ]
    for transformation, accuracy in robustness.moved.items():
        if transformation != QUARTER_TURN_KEY and "interpolated" not in transformation:
            drop = robustness.drop(transformation)
            several_draws = accuracy.draws > 1
            note = f"{abs(drop):.1f} points {'lower' if drop >= 0 else 'higher'} than {robustness.unmoved}"
            cards.append(
                {
                    "title": _transformation_text(transformation).capitalize(),
                    "number": f"{accuracy.mean:.1f}",
                    "unit": f"± {accuracy.std:.1f} %" if several_draws else "%",
                    "note": note + (f", {accuracy.draws} random draws" if several_draws else ""),
                }
            )
    return cards


def _accuracy_rows(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """Return the rows of the accuracy table: a text, and for each network its accuracy and its drop."""

    def cells(accuracies: Sequence[Accuracy]) -> list[tuple[str, str]]:
        return [
            (str(accuracy), f"{subject.robustness.upright - accuracy.mean:.1f}")
            for subject, accuracy in zip(subjects, accuracies, strict=True)
        ]

    rows: list[dict[str, Any]] = [
        {
            "images": subjects[0].robustness.unmoved,
            "cells": [(f"{subject.robustness.upright:.1f}", "") for subject in subjects],
        }
    ]
    for number, turn in enumerate(subjects[0].quarter_turns):
        accuracies = [
            Accuracy(100 * subject.quarter_turns[number].right / subject.robustness.images, 0.0, 1)
            for subject in subjects
        ]
        rows.append({"images": f"rotated by {turn.degrees} degrees", "cells": cells(accuracies)})
    for transformation in subjects[0].robustness.moved:
        if transformation != QUARTER_TURN_KEY:
            accuracies = [subject.robustness.moved[transformation] for subject in subjects]
            rows.append({"images": _transformation_text(transformation), "cells": cells(accuracies)})
    return rows


def _transformation_text(transformation: str) -> str:
    """Return how the page names a random transformation of the test images.

    >>> _transformation_text("rotated, pixels not interpolated"), _transformation_text("shifted by up to 3 pixels")
    ('rotated at random, pixels not interpolated', 'shifted by up to 3 pixels')
    """
    return transformation.replace("rotated", "rotated at random", 1)


def _figures(report: Report) -> dict[str, Markup]:
    """Draw all figures of the page as SVG."""

    def lines(curve_name: str, quantity: str) -> list[Line]:
        curves = [getattr(subject, curve_name) for subject in report.subjects]
        return [
            Line(subject.name, style, curve.at, getattr(curve, quantity))
            for subject, curve, style in zip(report.subjects, curves, (NETWORK_STYLE, BASELINE_STYLE), strict=False)
        ]

    largest_class = 100 * max(sum(row) for row in report.confusion) / sum(map(sum, report.confusion))
    styles = iter((NETWORK_STYLE, SECOND_NETWORK_STYLE, BASELINE_STYLE))
    changes = [
        Line(output if number == 0 else f"{output} of the CNN", next(styles), subject.by_angle.at, values)
        for number, subject in enumerate(report.subjects)
        for output, values in subject.change.items()
    ]
    names = [_replace_undecodable(name) for name in report.data.class_names]
    figures = {
        "change": inline_svg(
            lambda axes: draw_max_change(axes, changes), CURVE_INCHES, "change of the output against rotation angle"
        ),
        "confusion": inline_svg(
            lambda axes: draw_confusion(axes, report.confusion, names), confusion_size(names), "confusion matrix"
        ),
    }
    if report.calibration is not None:
        curves = {"as predicted": report.calibration.bins}
        if report.calibration.scaled_bins is not None:
            curves["with temperature"] = report.calibration.scaled_bins
        figures["reliability"] = inline_svg(
            lambda axes: draw_reliability(axes, curves), CURVE_INCHES, "accuracy against confidence"
        )
    for variable, draw in (("angle", draw_against_angle), ("shift", draw_against_shift)):
        for quantity, label, chance in (
            ("accuracy", "accuracy", largest_class),
            ("confidence", "mean confidence", None),
        ):
            draw_lines = partial(draw, lines=lines(f"by_{variable}", quantity), ylabel=f"{label} (%)", chance=chance)
            figures[f"{variable}_{quantity}"] = inline_svg(draw_lines, CURVE_INCHES, f"{label} against {variable}")
    return {name: Markup(svg) for name, svg in figures.items()}


def _change_rows(subjects: Sequence[Subject]) -> list[dict[str, str]]:
    """Return the largest change of each output, at quarter turns and at other angles."""
    rows = []
    for subject in subjects:
        for output, values in subject.change.items():
            by_angle = list(zip(subject.by_angle.at, values, strict=True))
            quarter_turns = max(value for angle, value in by_angle if angle in QUARTERS)
            other_angles = max(value for angle, value in by_angle if angle % 90)
            rows.append(
                {
                    "output": f"{subject.name}, {output}",
                    "quarter_turns": f"{quarter_turns:.2g}",
                    "other_angles": f"{other_angles:.2g}",
                }
            )
    return rows


def _evidence_uri(image: Tensor, evidence: Tensor | None) -> str | None:
    """Encode a picture of the evidence, if there is any, as a ``data:`` URI."""
    if evidence is None:
        return None
    return png_data_uri(torch.from_numpy(overlay_evidence(image, evidence)).permute(2, 0, 1) / 255)


def _calibration_rows(calibration: CalibrationReport | None, unmoved: str) -> list[tuple[str, list[str]]]:
    """Return the expected calibration errors: a rotation, and the errors without and with temperature scaling."""
    if calibration is None:
        return []
    columns = [calibration.errors, *([calibration.scaled_errors] if calibration.scaled_errors else [])]
    names = {UPRIGHT: unmoved, QUARTER_TURN_KEY: "rotated by 90 degrees"}
    return [
        (names.get(rotation) or _transformation_text(rotation), [f"{errors[rotation]:.1f}" for errors in columns])
        for rotation in calibration.errors
    ]


def _provenance(report: Report) -> list[tuple[str, str]]:
    """Return the last table of the page: how the numbers were computed."""
    provenance = report.made
    rows = [("command", provenance["command"])] if "command" in provenance else []
    rows += [
        (subject.name, f"{subject.architecture}, {subject.parameters:,} parameters") for subject in report.subjects
    ]
    if "boundary" in provenance:
        rows.append(("boundary", provenance["boundary"]))
    if "recipe" in provenance:
        rows.append(("CNN trained with", f"the same training images; {provenance['recipe']}"))
    rows.append(("seed", str(report.seed)))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())))
    machine = provenance["machine"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    rows.append(("machine", ", ".join(filter(None, [machine["gpu"], machine["cpu"], threads]))))
    rows.append(("date", provenance["date"]))
    return rows


def _most_frequent_classes(images: Mapping[str, Sequence[int]]) -> list[int]:
    """Return the classes with the most images in all parts together, at most :data:`MAX_TABLE_ROWS`, in their order."""
    totals = np.sum(list(images.values()), axis=0)
    return sorted(np.argsort(-totals, kind="stable")[:MAX_TABLE_ROWS].tolist())


def _note(count: int, total: int, what: str) -> str:
    """Return a sentence if not all classes are shown.

    >>> _note(3, 3, "shown"), _note(100, 600, "shown")
    ('', ' 100 of 600 classes shown; all numbers are in report.json.')
    """
    return "" if count == total else f" {count} of {total} classes {what}; all numbers are in {JSON_NAME}."


def _printable(value: Any) -> Any:
    """Return a value as the template shows it: text without control characters. SVG and numbers stay as they are."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return escape_control_characters(_replace_undecodable(value))


def _replace_undecodable(text: str) -> str:
    """Replace bytes that are not UTF-8, which Python keeps as surrogate characters, by replacement characters."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)
