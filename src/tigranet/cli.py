"""The ``tigranet`` command: parses, calls, prints."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

if TYPE_CHECKING:
    from tigranet.data import DataSet
    from tigranet.model import TIGraNet

app = typer.Typer(
    help="Image classification that does not care how the image is turned or shifted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Boundary(StrEnum):
    """The names of GridLaplacian's boundaries."""

    free = "free"
    torus = "torus"


@app.callback()
def _tigranet() -> None:
    pass  # makes `train` a command of its own while it is the only one


@app.command(epilog="Example: tigranet train mnist-012 -o model/")
def train(
    data: Annotated[str, typer.Argument(help="The name of a data set: mnist-012.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder that the model is saved to.")] = Path(
        "model"
    ),
    architecture: Annotated[
        str, typer.Option(help="A preset, or layers such as 'SC[3,3]-S[10]-FC[50]'.")
    ] = "paper-small",
    boundary: Annotated[
        Boundary, typer.Option(help="free is the paper's grid; torus makes shifts exact.")
    ] = Boundary.free,
    epochs: Annotated[int, typer.Option(help="Passes over the training images.")] = 120,
    jitter: Annotated[bool, typer.Option(help="Shift each training image by up to half a pixel.")] = True,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Train on upright images, measure at every angle, save the model."""
    from tigranet.data import load
    from tigranet.experiments.paper import TABLE_2
    from tigranet.experiments.runner import run
    from tigranet.training import Recipe

    console = Console(stderr=True, highlight=False)
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"a model is saved to a folder, got the file '{output}'")
    recipe = Recipe(epochs=epochs, jitter=0.5 if jitter else 0.0, seed=seed)
    data_set = load(data, seed)
    console.print(f"{data_set.name}: {len(data_set.train.labels)} upright training images, never rotated")
    console.print(f"recipe: {recipe}")
    module, measured = run(data_set, architecture, recipe, boundary.value, console)
    module.save_pretrained(output)
    picture = _draw(output / "rotated.png", module, data_set, console)
    if as_json:
        print(json.dumps(measured.to_json() | {"model": str(output)}))
        return
    table = Table("accuracy, %", Column("measured", justify="right"))
    rows = [
        ["training images", f"{measured.train:.1f}"],
        ["validation images", f"{measured.validation:.1f}"],
        ["test images, upright", f"{measured.test:.1f}"],
        ["test images, rotated", str(measured.rotated)],
    ]
    if data == "mnist-012" and architecture == "paper-small":
        paper = TABLE_2["TIGraNet"]
        table.add_column("paper, Table 2", justify="right")
        cells = [f"{paper.train:g}", f"{paper.validation:g}", "-", f"{paper.rotated:g} ± {paper.rotated_std:g}"]
        rows = [[*row, cell] for row, cell in zip(rows, cells, strict=True)]
    for row in rows:
        table.add_row(*row)
    print(f"{measured.architecture}, {measured.parameters:,} parameters")
    Console().print(table)
    print(f"rotated: mean ± standard deviation of 10 draws of random angles; trained in {measured.seconds:.0f} s")
    print(f"saved to {output}" + (f", with a picture: {picture}" if picture else ""))


def _draw(path: Path, module: "TIGraNet", data_set: "DataSet", console: Console) -> Path | None:
    try:
        from tigranet.figures.rotated_digits import save_rotated
    except ModuleNotFoundError:
        console.print("no picture without matplotlib: pip install 'tigranet\\[figures]'")
        return None
    save_rotated(path, module, data_set.test, data_set.class_names)
    return path


def main() -> None:
    """Run the command; an error is one line, a traceback only with --debug."""
    try:
        app()
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        if "--debug" in sys.argv:
            raise
        print(f"tigranet: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
