"""Suggestions as one self-contained HTML page with thumbnails, and as CSV files."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from torch import Tensor

from tigranet.atomic_files import atomic_write
from tigranet.evaluation.provenance import versions
from tigranet.evaluation.row_writer import open_row_writer
from tigranet.evaluation.suggestions import ImageSuggestion, ImageSuggestions, LabelSuggestion, LabelSuggestions
from tigranet.figures.report_pictures import thumbnail_uri
from tigranet.figures.report_text import breakable, page_name, printable

PAGE_NAME, IMAGES_NAME, LABELS_NAME = "suggestions.html", "suggestions.csv", "suspicious_labels.csv"
"""Names of the files."""
MAX_SHOWN = 120
"""Largest number of thumbnails in each part of the page."""
MAX_NAMES = 20
"""Largest number of classes that are named as not judged."""


def save_suggestions(
    folder: Path,
    images: ImageSuggestions,
    labels: LabelSuggestions | None,
    thumbnails: Mapping[str, Tensor],
    label_thumbnails: Mapping[int, Tensor],
    origin: Mapping[str, str],
) -> Path:
    """Write the page, the images to label as CSV, and the labels to check as CSV if there are any results for them.

    Each file replaces an older one only when all of them are complete.

    Args:
        folder: Folder to write to. It is created if it does not exist.
        images: Images to label.
        labels: Labels to check, or None if this was not examined.
        thumbnails: Pictures of images to label, by path. Those that are missing are shown without.
        label_thumbnails: Pictures of images whose labels are to be checked, by position.
        origin: Texts for the page: the model, and whatever else describes how it was made.

    Returns:
        The path of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = render_suggestions(images, labels, thumbnails, label_thumbnails, origin)
    with ExitStack() as files:
        page = files.enter_context(atomic_write(folder / PAGE_NAME))
        page.write(text)
        page.flush()  # a full disk is noticed here, before a file is replaced
        rows: list[tuple[str, Any, Any]] = [(IMAGES_NAME, ImageSuggestion, images.images)]
        if labels is not None:
            rows.append((LABELS_NAME, LabelSuggestion, labels.labels))
        for name, kind, values in rows:
            names = [field.name for field in fields(kind)]
            write = files.enter_context(open_row_writer(names, folder / name))
            for value in values:
                write(asdict(value))
    return folder / PAGE_NAME


def render_suggestions(
    images: ImageSuggestions,
    labels: LabelSuggestions | None,
    thumbnails: Mapping[str, Tensor],
    label_thumbnails: Mapping[int, Tensor],
    origin: Mapping[str, str],
) -> str:
    """Render the page.

    Args:
        images: Images to label.
        labels: Labels to check, or None if this was not examined.
        thumbnails: Pictures of images to label, by path.
        label_thumbnails: Pictures of images whose labels are to be checked, by position.
        origin: Texts for the page.

    Returns:
        The text of the page. Of many images, the first :data:`MAX_SHOWN` are shown.
    """
    shown_labels = [] if labels is None else labels.labels[:MAX_SHOWN]
    return (
        _environment()
        .get_template("suggestions.html")
        .render(
            origin=origin,
            cards=_cards(images, labels),
            image_total=len(images.images),
            images_csv=IMAGES_NAME,
            labels_csv=LABELS_NAME,
            max_names=MAX_NAMES,
            shown_images=[
                asdict(image) | {"uri": _uri(thumbnails.get(image.path))} for image in images.images[:MAX_SHOWN]
            ],
            labels=labels,
            shown_labels=[
                asdict(label) | {"uri": _uri(label_thumbnails.get(label.position))} for label in shown_labels
            ],
            provenance=_provenance(origin),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tigranet", "figures"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=printable,
    )
    environment.filters["per_cent"] = lambda fraction: f"{100 * fraction:.1f}"
    environment.filters["name"] = breakable
    environment.filters["plain_name"] = page_name
    return environment


def _uri(thumbnail: Tensor | None) -> str | None:
    return None if thumbnail is None else thumbnail_uri(thumbnail)


def _cards(images: ImageSuggestions, labels: LabelSuggestions | None) -> list[dict[str, str]]:
    """Return the boxes with large numbers."""
    left_out = [f"labelled already: {images.labelled:,}", f"copies: {images.duplicates:,}"]
    if images.unreadable_files:
        left_out.append(f"unreadable: {len(images.unreadable_files):,}")
    cards = [
        {
            "title": "Images to label",
            "number": f"{len(images.images):,}",
            "note": f"chosen from {images.examined:,} unlabelled images",
        },
        {
            "title": "Left out",
            "number": f"{images.labelled + images.duplicates + len(images.unreadable_files):,}",
            "note": ", ".join(left_out),
        },
    ]
    if labels is not None:
        cards.append(
            {
                "title": "Labels to check",
                "number": f"{len(labels.labels):,}",
                "note": f"of {labels.examined:,} labels that were judged",
            }
        )
    return cards


def _provenance(origin: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the last table of the page: how it was made."""
    rows = [(name, value) for name, value in origin.items() if value]
    return [*rows, ("versions", ", ".join(f"{name} {version}" for name, version in versions().items()))]
