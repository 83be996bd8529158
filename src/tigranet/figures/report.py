"""The report as a page: one HTML file that needs no other, and its numbers as JSON beside it."""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tigranet.atomic_files import atomic_write
from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import Accuracy
from tigranet.evaluation.report import QUARTERS, Report, Subject
from tigranet.figures.confusion import confusion_size, draw_confusion
from tigranet.figures.curves import OURS, OURS_TOO, RIVAL, Line, draw_against_angle, draw_against_shift, draw_change
from tigranet.figures.svg import as_data_uri, as_svg

PAGE, NUMBERS = "report.html", "report.json"
OUTSIDE = {"zeros": "zeros (black)", "reflection": "mirror images of the border"}
NOTHING = "\N{EN DASH}"
CURVE = (5.0, 3.1)
"""Inches; two stand side by side on a desk, one fills a phone."""


def save_report(folder: Path, report: Report, test: LabelledImages) -> Path:
    """Write the page and its numbers into ``folder``, each whole or not at all; ``test`` holds the images."""
    folder.mkdir(parents=True, exist_ok=True)
    page = render(report, test)
    with atomic_write(folder / NUMBERS) as file:
        file.write(json.dumps(report.to_json(), indent=2) + "\n")
    with atomic_write(folder / PAGE) as file:
        file.write(page)
    return folder / PAGE


def render(report: Report, test: LabelledImages) -> str:
    """The page. Names that are not UTF-8 are shown with a mark for each letter that is not."""
    environment = Environment(
        loader=PackageLoader("tigranet", "figures"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["per_cent"] = lambda part: NOTHING if part is None else f"{100 * part:.1f}"
    ours, data = report.subjects[0], report.data
    page = environment.get_template("report.html").render(
        data=data,
        model=report.made.get("model"),
        boundary=report.made.get("boundary"),
        subjects=report.subjects,
        test_images=ours.robustness.images,
        curve_images=ours.by_angle.images,
        change_images=report.change_images,
        outside=OUTSIDE[data.outside],
        verdict=_verdict(report),
        cards=_cards(ours),
        rows=_rows(report.subjects),
        draws=max(seen.draws for seen in ours.robustness.moved.values()),
        figures=_figures(report),
        changes=_changes(report.subjects),
        classes=report.classes,
        mistake_count=report.mistakes,
        mistakes=[
            {
                "uri": as_data_uri(test.images[mistake.image]),
                "image": mistake.image,
                "answer": mistake.answer,
                "truth": mistake.truth,
                "probability": mistake.probability,
                "file": mistake.file and _printable(mistake.file),
            }
            for mistake in report.confident_mistakes
        ],
        counts=[
            {"name": name, "counts": counts}
            for name, *counts in zip(data.class_names, *data.images.values(), strict=True)
        ],
        made=_made(report),
    )
    return page.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _verdict(report: Report) -> list[str]:
    ours, images = report.subjects[0], report.subjects[0].robustness.images
    rights = ", ".join(str(turn.right) for turn in ours.quarter_turns)
    if ours.exact():
        first = (
            f"Turned by 90, 180 or 270 degrees, not one of {images} answers changes: "
            f"{ours.right} are right upright and {ours.right} are right turned."
        )
    else:
        changed = ", ".join(str(turn.changed) for turn in ours.quarter_turns)
        first = (
            f"Turned by 90, 180 and 270 degrees, {changed} of {images} answers change: {ours.right} are right upright, "
            f"{rights} turned."
        )
    rotated = ours.robustness.moved["rotated"]
    second = f"At random angles the network is right on {rotated}\u00a0% of the images"
    if len(report.subjects) > 1:
        rival = report.subjects[1]
        second += (
            f"; a plain CNN of the same size, trained on the same images, on {rival.robustness.moved['rotated']} % "
            f"(upright: {ours.robustness.upright:.1f} % and {rival.robustness.upright:.1f} %)"
        )
    return [first, f"{second}."]


def _cards(ours: Subject) -> list[dict[str, str]]:
    found, images = ours.robustness, ours.robustness.images
    cards = [
        {"what": "Upright", "number": f"{found.upright:.1f}", "unit": "%", "note": f"{ours.right} of {images} right"},
        {
            "what": "Turned 90°, 180°, 270°",
            "number": " · ".join(dict.fromkeys(f"{100 * turn.right / images:.1f}" for turn in ours.quarter_turns)),
            "unit": "%",
            "note": ", ".join(str(turn.right) for turn in ours.quarter_turns) + f" of {images} right",
        },
    ]
    for how, seen in found.moved.items():
        if how != "turned by 90 degrees" and "interpolated" not in how:
            drop = found.drop(how)
            spread = f"± {seen.std:.1f} %" if seen.draws > 1 else "%"
            note = f"{abs(drop):.1f} points {'lost' if drop >= 0 else 'gained'}" + (
                f", {seen.draws} draws" if seen.draws > 1 else ""
            )
            what = "Rotated at random" if how == "rotated" else how.capitalize()
            cards.append({"what": what, "number": f"{seen.mean:.1f}", "unit": spread, "note": note})
    return cards


def _rows(subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    def cells(*accuracies: Accuracy) -> list[tuple[str, str]]:
        return [
            (str(seen), f"{subject.robustness.upright - seen.mean:.1f}")
            for subject, seen in zip(subjects, accuracies, strict=True)
        ]

    rows: list[dict[str, Any]] = [
        {"what": "upright", "cells": [(f"{subject.robustness.upright:.1f}", "") for subject in subjects]}
    ]
    for number, turn in enumerate(subjects[0].quarter_turns):
        seen = [
            Accuracy(100 * subject.quarter_turns[number].right / subject.robustness.images, 0.0, 1)
            for subject in subjects
        ]
        rows.append({"what": f"turned by {turn.degrees} degrees", "cells": cells(*seen)})
    for how in subjects[0].robustness.moved:
        if how != "turned by 90 degrees":
            rows.append({"what": how, "cells": cells(*(subject.robustness.moved[how] for subject in subjects))})
    return rows


def _figures(report: Report) -> dict[str, Markup]:
    def lines(curve: str, what: str) -> list[Line]:
        styled = zip(report.subjects, (OURS, RIVAL), strict=False)
        seen = [(subject.name, style, getattr(subject, curve)) for subject, style in styled]
        return [Line(name, style, curve.at, getattr(curve, what)) for name, style, curve in seen]

    chance = 100 * max(sum(row) for row in report.confusion) / sum(map(sum, report.confusion))
    styles = iter((OURS, OURS_TOO, RIVAL))
    changes = [
        Line(what if number == 0 else f"CNN's {what}", next(styles), subject.by_angle.at, values)
        for number, subject in enumerate(report.subjects)
        for what, values in subject.change.items()
    ]
    names = [_legible(name) for name in report.data.class_names]
    drawn = {
        "change": as_svg(lambda axes: draw_change(axes, changes), CURVE, "change of the answer against angle"),
        "confusion": as_svg(
            lambda axes: draw_confusion(axes, report.confusion, names), confusion_size(names), "confusion matrix"
        ),
    }
    for against, draw in (("angle", draw_against_angle), ("shift", draw_against_shift)):
        for what, told, guessing in (("accuracy", "accuracy", chance), ("confidence", "mean confidence", None)):
            curve = partial(draw, lines=lines(f"by_{against}", what), what=f"{told}, %", chance=guessing)
            drawn[f"{against}_{what}"] = as_svg(curve, CURVE, f"{told} against {against}")
    return {name: Markup(svg) for name, svg in drawn.items()}


def _changes(subjects: Sequence[Subject]) -> list[dict[str, str]]:
    rows = []
    for subject in subjects:
        for what, values in subject.change.items():
            by_angle = list(zip(subject.by_angle.at, values, strict=True))
            quarter = max(value for angle, value in by_angle if angle in QUARTERS)
            other = max(value for angle, value in by_angle if angle % 90)
            rows.append({"what": f"{subject.name}, {what}", "quarter": f"{quarter:.2g}", "other": f"{other:.2g}"})
    return rows


def _made(report: Report) -> list[tuple[str, str]]:
    made = report.made
    rows = [("command", made["command"])] if "command" in made else []
    rows += [
        (subject.name, f"{subject.architecture}, {subject.parameters:,} parameters") for subject in report.subjects
    ]
    if "boundary" in made:
        rows.append(("boundary", made["boundary"]))
    if "recipe" in made:
        rows.append(("CNN trained", f"on the same training images: {made['recipe']}"))
    rows.append(("seed", str(report.seed)))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in made["versions"].items())))
    machine = made["machine"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    rows.append(("machine", ", ".join(filter(None, [machine["gpu"], machine["cpu"], threads]))))
    rows.append(("date", made["date"]))
    return rows


def _legible(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _printable(name: str) -> str:
    """A name of a file, with a mark for what is not UTF-8 in it."""
    return os.fsencode(name).decode(errors="replace")
