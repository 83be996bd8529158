"""``tigranet report``."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tigranet.cli.options import Data, DataDir, Json, Model, MovementSeed, Precision, global_options, typed_command
from tigranet.cli.output import print_line, print_table, print_unreadable_files, progress_console


def report(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the page to.")] = Path("report"),
    cnn: Annotated[
        bool, typer.Option(help="Train two CNNs of the same size to compare with, one with rotations.")
    ] = True,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs of the CNNs.", show_default="chosen by the model")
    ] = None,
    images: Annotated[int, typer.Option(min=1, help="Maximum number of test images for the curves.")] = 1000,
    seed: MovementSeed = None,
    data_dir: DataDir = None,
    precision: Precision = "32",
    as_json: Json = False,
) -> None:
    """Write an HTML page: accuracy at every angle, classes, examples, mistakes, and what to do next, beside two CNNs.

    The CNNs have as many parameters as the model and are trained on the same images: one with the same recipe, and one
    with the recipe of a CNN, on rotated images. Without test images the validation images are measured, and the page
    says so.
    """
    from tigranet.workflows.report import report as write_report

    console = progress_console()
    result = write_report(
        model,
        data,
        output,
        cnn=cnn,
        epochs=epochs,
        curve_images=images,
        seed=seed,
        data_dir=data_dir,
        device=global_options().device,
        precision=precision,
        command=typed_command(),
        console=console,
    )
    print_unreadable_files(result.unreadable_files, console)
    if as_json:
        counts = {"excluded_images": result.excluded_images}
        print(json.dumps(result.report.to_json() | counts | {"page": str(result.page)}))
        return
    subjects = result.report.subjects
    if result.report.part != "test":
        print_line(f"no test images: these are accuracies on the {subjects[0].robustness.images} validation images")
    table = Table(f"accuracy on {result.report.part} images, %", *(subject.name for subject in subjects))
    table.add_row(subjects[0].robustness.unmoved, *(f"{subject.robustness.upright:.1f}" for subject in subjects))
    for movement in subjects[0].robustness.moved:
        table.add_row(movement, *(str(subject.robustness.moved[movement]) for subject in subjects))
    print_table(table)
    print_line(f"open {result.page}")
