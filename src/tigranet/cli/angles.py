"""``tigranet angles``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tigranet.cli.options import BaselineEpochs, Baselines, Data, DataDir, Json, MovementSeed, global_options
from tigranet.cli.output import print_line, print_table, print_unreadable_files, progress_console

if TYPE_CHECKING:
    from tigranet.evaluation.curves import Invariance
    from tigranet.workflows.compare import Comparison


def angles(
    data: Data,
    models: Annotated[
        list[str], typer.Argument(help="Saved networks, or presets or layers for networks that are not trained.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the picture to.")] = Path("angles"),
    rivals: Baselines = False,
    epochs: BaselineEpochs = None,
    images: Annotated[int, typer.Option(min=1, help="Maximum number of test images.")] = 200,
    by: Annotated[int, typer.Option(min=1, max=180, help="Step from one angle to the next, in degrees.")] = 15,
    seed: MovementSeed = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Compare networks at every angle: how much their logits change, and how often they are right.

    Accuracy is measured for trained networks with the classes of the data. The images are split as for the training of
    the first network, and images that any of the networks was trained on are left out.
    """
    from tigranet.workflows.compare import compare

    console = progress_console()
    comparison = compare(
        data,
        models,
        output,
        baselines=rivals,
        epochs=epochs,
        images=images,
        degrees=by,
        seed=seed,
        data_dir=data_dir,
        device=global_options().device,
        console=console,
    )
    print_unreadable_files(comparison.unreadable_files, console)
    if as_json:
        print(json.dumps({name: asdict(curve) for name, curve in comparison.networks.items()}))
    else:
        _print(comparison)


def _print(comparison: "Comparison") -> None:
    table = Table(title=f"{comparison.images} images of {comparison.data}, rotated", title_justify="left")
    table.add_column("network", no_wrap=True)
    for column in ("change at quarters", "elsewhere", "accuracy upright", "lowest", "mean, %"):
        table.add_column(column, justify="right")
    for name, curve in comparison.networks.items():
        between = f"{curve.mean_change(False):.3f}" if any(angle % 90 for angle in curve.at) else "-"
        table.add_row(name, f"{curve.mean_change(True):.1e}", between, *_accuracies(curve))
    print_table(table)
    for path in comparison.files:
        print_line(path)


def _accuracies(curve: "Invariance") -> list[str]:
    """Format the accuracy upright, the lowest and the mean."""
    if curve.accuracy is None:
        return ["-"] * 3
    mean = sum(curve.accuracy[:-1]) / (len(curve.at) - 1)  # 360 degrees is the same as 0
    return [f"{value:.1f}" for value in (curve.accuracy[0], min(curve.accuracy), mean)]
