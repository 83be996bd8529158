"""``tigranet suggest``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tigranet.cli.options import MAX_SEED, DataDir, Images, Json, Model, global_options, typed_command
from tigranet.cli.output import print_line, print_unreadable_files, progress_console

if TYPE_CHECKING:
    from tigranet.evaluation.suggestions import LabelSuggestions
    from tigranet.workflows.suggest import SuggestResult

MAX_PRINTED = 10
"""Number of images and of labels that are printed; the files have all of them."""


def suggest(
    model: Model,
    images: Images,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the page to.")] = Path("suggestions"),
    train: Annotated[
        str | None,
        typer.Option(
            help="Labelled images whose labels are checked: a folder with one sub-folder per class, a CSV file, an "
            ".npz file, or the name of a data set. They are not suggested.",
            show_default="labels are not checked",
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Number of images to suggest.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the choice of images.")] = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Suggest which images to label next and, with --train, which labels are probably wrong.

    The folder receives suggestions.html, a page with thumbnails, suggestions.csv and, with --train,
    suspicious_labels.csv.
    """
    from tigranet.workflows.suggest import suggest as write_suggestions

    console = progress_console()
    result = write_suggestions(
        model,
        images,
        output,
        train=train,
        count=count,
        seed=seed,
        data_dir=data_dir,
        device=global_options().device,
        command=typed_command(),
        console=console,
    )
    unreadable = [*result.images.unreadable_files, *(result.labels.unreadable_files if result.labels else ())]
    print_unreadable_files(list(dict.fromkeys(unreadable)), console)
    if as_json:
        labels = None if result.labels is None else result.labels.to_json()
        print(json.dumps({"images": result.images.to_json(), "labels": labels, "page": str(result.page)}))
        return
    _print_images(result)
    if result.labels is not None:
        _print_labels(result.labels)
    print_line(f"open {result.page}")


def _print_images(result: "SuggestResult") -> None:
    images = result.images
    print_line(
        f"{len(images.images)} images to label, chosen from {images.examined} "
        f"(left out: labelled already {images.labelled}, copies {images.duplicates})"
    )
    for image in images.images[:MAX_PRINTED]:
        second = (
            "" if image.second_label is None else f" or {image.second_label} {100 * image.second_probability:.1f} %"
        )
        print_line(f"  {image.path}: {image.label} {100 * image.probability:.1f} %{second}")
    _print_rest(len(images.images))


def _print_labels(labels: "LabelSuggestions") -> None:
    print_line(
        f"{len(labels.labels)} of {labels.examined} labels to check; a classifier that had not seen the images agrees "
        f"with {labels.accuracy:.1f} % of the labels"
    )
    if labels.left_out:
        print_line(f"{labels.left_out} more labels look wrong, which is too many to be credible: they are not listed")
    if labels.unjudged_classes:
        print_line(
            f"{labels.unjudged_images} images of {len(labels.unjudged_classes)} classes were not judged: fewer than 3 "
            "different images, or too few groups"
        )
    for label in labels.labels[:MAX_PRINTED]:
        image = f"image {label.position}" if label.path is None else label.path
        reason = "identical image" if label.evidence == "identical image" else f"score {label.score:.2f}"
        print_line(f"  {image}: {label.label}, or {label.suggested} ({reason})")
    _print_rest(len(labels.labels))


def _print_rest(total: int) -> None:
    if total > MAX_PRINTED:
        print_line(f"  and {total - MAX_PRINTED} more")
