"""The texts and tables of the report page, from the measurements."""

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tigranet.csv_text import quote_formula
from tigranet.evaluation.accuracy import Accuracy
from tigranet.evaluation.accuracy_interval import AccuracyInterval, accuracy_interval
from tigranet.evaluation.calibration_report import CalibrationReport
from tigranet.evaluation.moved_logits import UPRIGHT
from tigranet.evaluation.report import PLAIN_CNN, ROTATED_CNN, Report
from tigranet.evaluation.report_subject import QUARTERS, Subject
from tigranet.evaluation.robustness import QUARTER
from tigranet.figures.report_text import page_name

JSON_NAME = "report.json"
"""Name of the file with all numbers."""
MAX_TABLE_ROWS = 100
"""Largest number of classes in a table of the page. The JSON file has all of them."""
RIVAL_TEXT = {
    PLAIN_CNN: "a plain CNN of the same size, trained on the same images,",
    ROTATED_CNN: "one trained with random rotations",
}
"""How a sentence introduces the networks to compare with."""


def summary_sentences(report: Report) -> list[str]:
    """Return the two sentences at the top of the page: quarter turns, and random angles.

    Args:
        report: The measurements.

    Returns:
        The sentences.
    """
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
            f"{network.right} are correct for {unmoved_images(report)} and {correct} for rotated images."
        )
    random_angles = f"The accuracy on randomly rotated images is {network.robustness.moved['rotated']}\u00a0%"
    rivals = report.subjects[1:]
    if rivals:
        reached = [
            f"{RIVAL_TEXT.get(cnn.name, cnn.name)} reaches {cnn.robustness.moved['rotated']}\u00a0%" for cnn in rivals
        ]
        unmoved = " and ".join(f"{subject.robustness.upright:.1f}" for subject in report.subjects[:2])
        if len(rivals) > 1:
            unmoved = ", ".join(f"{subject.robustness.upright:.1f}" for subject in report.subjects[:-1])
            unmoved += f" and {rivals[-1].robustness.upright:.1f}"
        random_angles += f"; {' and '.join(reached)} (on {unmoved_images(report)}: {unmoved}\u00a0%)"
    return [quarter_turns, f"{random_angles}."]


def interval_text(interval: AccuracyInterval) -> str:
    """Return an interval as a table shows it.

    Args:
        interval: The interval.

    Returns:
        Its limits in per cent.

    Example:
        >>> interval_text(accuracy_interval(92.0, 300))
        '88.4 to 94.6'
    """
    return f"{interval.low:.1f} to {interval.high:.1f}"


def unmoved_images(report: Report) -> str:
    """Return what images that are not moved are called.

    Args:
        report: The measurements.

    Returns:
        ``upright images``, or ``images as they are``.
    """
    unmoved = report.subjects[0].robustness.unmoved
    return "upright images" if unmoved == "upright" else f"images {unmoved}"


def accuracy_cards(network: Subject) -> list[dict[str, str]]:
    """Return the boxes with large numbers: unmoved images, quarter turns, and each random transformation.

    Args:
        network: The measurements of the network.

    Returns:
        Title, number, unit and note of each box.
    """
    robustness, images = network.robustness, network.robustness.images
    cards = [
        {
            "title": robustness.unmoved.capitalize(),
            "number": f"{robustness.upright:.1f}",
            "unit": "%",
            "note": f"{network.right} of {images} correct; 95\u00a0% interval: {interval_text(network.interval)}",
        },
        {
            "title": "Rotated by 90°, 180°, 270°",
            "number": " · ".join(dict.fromkeys(f"{100 * turn.right / images:.1f}" for turn in network.quarter_turns)),
            "unit": "%",
            "note": ", ".join(str(turn.right) for turn in network.quarter_turns) + f" of {images} correct",
        },
    ]
    for transformation, accuracy in robustness.moved.items():
        if transformation != QUARTER and "interpolated" not in transformation:
            drop = robustness.drop(transformation)
            several_draws = accuracy.draws > 1
            is_equal = f"{abs(drop):.1f}" == "0.0"
            difference = f"{abs(drop):.1f} points {'lower' if drop > 0 else 'higher'} than {robustness.unmoved}"
            note = f"the same as {robustness.unmoved}" if is_equal else difference
            cards.append(
                {
                    "title": transformation_text(transformation).capitalize(),
                    "number": f"{accuracy.mean:.1f}",
                    "unit": f"± {accuracy.std:.1f} %" if several_draws else "%",
                    "note": note + (f", {accuracy.draws} random draws" if several_draws else ""),
                }
            )
    return cards


def accuracy_rows(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """Return the rows of the accuracy table.

    Args:
        subjects: The measurements of each network.

    Returns:
        A text, and for each network its accuracy and its drop.
    """

    def cells(accuracies: Sequence[Accuracy]) -> list[tuple[str, str]]:
        return [
            (str(accuracy), f"{subject.robustness.upright - accuracy.mean:z.1f}")
            for subject, accuracy in zip(subjects, accuracies, strict=True)
        ]

    rows: list[dict[str, Any]] = [
        {
            "images": subjects[0].robustness.unmoved,
            "cells": [(f"{subject.robustness.upright:.1f}", "") for subject in subjects],
        },
        {"images": "95 % interval", "cells": [(interval_text(subject.interval), "") for subject in subjects]},
    ]
    for number, turn in enumerate(subjects[0].quarter_turns):
        accuracies = [
            Accuracy(100 * subject.quarter_turns[number].right / subject.robustness.images, 0.0, 1)
            for subject in subjects
        ]
        rows.append({"images": f"rotated by {turn.degrees} degrees", "cells": cells(accuracies)})
    for transformation in subjects[0].robustness.moved:
        if transformation != QUARTER:
            accuracies = [subject.robustness.moved[transformation] for subject in subjects]
            rows.append({"images": transformation_text(transformation), "cells": cells(accuracies)})
    return rows


def transformation_text(transformation: str) -> str:
    """Return how the page names a random transformation of the test images.

    Args:
        transformation: Its name in :class:`~tigranet.evaluation.robustness.Robustness`.

    Returns:
        The name.

    Example:
        >>> transformation_text("rotated, pixels not interpolated"), transformation_text("shifted by up to 3 pixels")
        ('rotated at random, pixels not interpolated', 'shifted by up to 3 pixels')
    """
    return transformation.replace("rotated", "rotated at random", 1)


def change_rows(subjects: Sequence[Subject]) -> list[dict[str, str]]:
    """Return the largest change of each output, at quarter turns and at other angles.

    Args:
        subjects: The measurements of each network.

    Returns:
        The rows of the table.
    """
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


def calibration_rows(calibration: CalibrationReport | None, unmoved: str) -> list[tuple[str, list[str]]]:
    """Return the expected calibration errors.

    Args:
        calibration: The measurements, or None.
        unmoved: What images that are not moved are called.

    Returns:
        A rotation, and the errors without and with temperature scaling.
    """
    if calibration is None:
        return []
    columns = [calibration.errors, *([calibration.scaled_errors] if calibration.scaled_errors else [])]
    names = {UPRIGHT: unmoved, QUARTER: "rotated by 90 degrees"}
    return [
        (names.get(rotation) or transformation_text(rotation), [f"{errors[rotation]:.1f}" for errors in columns])
        for rotation in calibration.errors
    ]


def class_rows(report: Report, labels: Sequence[int]) -> list[dict[str, Any]]:
    """Return the metrics of some classes.

    Args:
        report: The measurements.
        labels: The classes.

    Returns:
        Name, numbers of images, precision, recall with its interval, and F1, as fractions; None where undefined.
    """
    rows = []
    for label in labels:
        metrics, right = report.classes[label], report.confusion[label][label]
        interval = accuracy_interval(100 * right / metrics.support, metrics.support) if metrics.support else None
        rows.append(
            {
                "name": metrics.name,
                "train": report.data.images["train"][label],
                "support": metrics.support,
                "right": right,
                "precision": metrics.precision,
                "recall": metrics.recall,
                "low": interval and interval.low / 100,
                "high": interval and interval.high / 100,
                "f1": metrics.f1,
            }
        )
    return rows


def class_csv_uri(report: Report) -> str:
    """Return the metrics of all classes as a CSV file in a ``data:`` URI.

    Args:
        report: The measurements.

    Returns:
        The URI. Names that a spreadsheet would execute are quoted.
    """
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    columns = ["train", "support", "right", "precision", "recall", "low", "high", "f1"]
    header = [
        "train_images",
        f"{report.part}_images",
        "right",
        "precision",
        "recall",
        "recall_low",
        "recall_high",
        "f1",
    ]
    table.writerow(["class", *header])
    for row in class_rows(report, range(len(report.classes))):
        values = ["" if row[column] is None else row[column] for column in columns]
        numbers = [f"{value:.4f}" if isinstance(value, float) else value for value in values]
        table.writerow([quote_formula(page_name(row["name"])), *numbers])
    content = base64.b64encode(file.getvalue().encode("utf-8-sig")).decode()  # spreadsheets recognise UTF-8 by its mark
    return f"data:text/csv;charset=utf-8;base64,{content}"


def rejection_rows(report: Report) -> list[dict[str, Any]]:
    """Return the table for choosing a rejection level.

    Args:
        report: The measurements.

    Returns:
        The probability, the numbers and the fractions of answered images and of right answers.
    """
    return [
        {
            "level": "all answers" if level.probability == 0 else f"{level.probability:g} and above",
            "answered": level.answered,
            "coverage": level.coverage,
            "right": level.right,
            "accuracy": level.accuracy,
            "interval": None
            if level.accuracy is None
            else interval_text(accuracy_interval(100 * level.accuracy, level.answered)),
        }
        for level in report.rejection
    ]


def provenance_rows(report: Report) -> list[tuple[str, str]]:
    """Return the last table of the page: how the numbers were computed.

    Args:
        report: The measurements.

    Returns:
        Names and values.
    """
    provenance = report.made
    rows = [("command", provenance["command"])] if "command" in provenance else []
    rows += [
        (subject.name, f"{subject.architecture}, {subject.parameters:,} parameters") for subject in report.subjects
    ]
    if "boundary" in provenance:
        rows.append(("boundary", provenance["boundary"]))
    if "recipe" in provenance:
        rows.append((f"{PLAIN_CNN}: recipe", f"the same training images; {provenance['recipe']}"))
    if "rotated_recipe" in provenance:
        text = f"the same training images, each rotated by a random angle; {provenance['rotated_recipe']}"
        rows.append((f"{ROTATED_CNN}: recipe", text))
    if provenance.get("training_seconds"):
        seconds = ", ".join(f"{name} {value:.0f} s" for name, value in provenance["training_seconds"].items())
        rows.append(("training time", seconds))
    rows.append(("seed", str(report.seed)))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())))
    machine = provenance["machine"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    rows.append(("machine", ", ".join(filter(None, [machine["gpu"], machine["cpu"], threads]))))
    rows.append(("date", provenance["date"]))
    return rows


def most_frequent_classes(images: Mapping[str, Sequence[int]]) -> list[int]:
    """Return the classes with the most images in all parts together.

    Args:
        images: Number of images of each class, by part.

    Returns:
        At most :data:`MAX_TABLE_ROWS` classes, in their order.
    """
    totals = np.sum(list(images.values()), axis=0)
    return sorted(np.argsort(-totals, kind="stable")[:MAX_TABLE_ROWS].tolist())


def shown_note(count: int, total: int, what: str) -> str:
    """Return a sentence if not all classes are shown.

    Args:
        count: Number of classes that are shown.
        total: Number of all classes.
        what: What is done with them.

    Returns:
        The sentence, or nothing.

    Example:
        >>> shown_note(3, 3, "shown"), shown_note(100, 600, "shown")
        ('', ' 100 of 600 classes shown; all numbers are in report.json.')
    """
    return "" if count == total else f" {count} of {total} classes {what}; all numbers are in {JSON_NAME}."
