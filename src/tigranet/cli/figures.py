"""``tigranet figures``."""

from pathlib import Path
from typing import Annotated

import typer

from tigranet.cli.options import BaselineEpochs, Baselines, Data, DataDir, Model, MovementSeed, global_options
from tigranet.cli.output import print_line, print_unreadable_files, progress_console


def figures(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the pictures to.")] = Path("figures"),
    rivals: Baselines = False,
    epochs: BaselineEpochs = None,
    seed: MovementSeed = None,
    data_dir: DataDir = None,
) -> None:
    """Draw the paper's figures: filters, the nodes that pooling keeps, maps of rotated images, and answers.

    Images are split as for the training, and images that the model was trained on are left out.
    """
    from tigranet.workflows.figures import figures as draw_figures

    console = progress_console()
    result = draw_figures(
        model,
        data,
        output,
        baselines=rivals,
        epochs=epochs,
        seed=seed,
        data_dir=data_dir,
        device=global_options().device,
        console=console,
    )
    print_unreadable_files(result.unreadable_files, console)
    for path in result.files:
        print_line(path)
