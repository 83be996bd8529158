"""The ``tigranet`` command: parses, calls, prints."""

import io
import json
import os
import shlex
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tigranet.graphs.grid import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tigranet.data import Broken, DataSet
    from tigranet.model import TIGraNet

app = typer.Typer(
    help="Image classification that does not care how the image is turned or shifted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The named data sets and where they come from.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Data = Annotated[
    str, typer.Argument(help="A folder with one sub-folder a class, or the name of a data set ('tigranet data list').")
]
Size = Annotated[
    int | None, typer.Option(min=2, help="Bring images of a folder to this size.  [default: theirs, at most 64]")
]
Color = Annotated[bool, typer.Option("--color", help="Use all channels of the images of a folder, not their grey.")]
DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the data; else TIGRANET_DATA, else the user's cache.")
]


@app.command(epilog="Example: tigranet train mnist-012 -o model/")
def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the model to.")] = Path("model"),
    architecture: Annotated[
        str | None,
        typer.Option(
            help="A preset, or layers such as 'SC[3,3]-S[10]-FC[50]'.  [default: paper-small, or the paper's]"
        ),
    ] = None,
    boundary: Annotated[Boundary, typer.Option(help="free is the paper's grid; torus makes shifts exact.")] = "free",
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the training images.  [default: fewer for more images]")
    ] = None,
    jitter: Annotated[bool, typer.Option(help="Shift each training image by up to half a pixel.")] = True,
    seed: Annotated[int, typer.Option(help="Draws the images, the starting weights, the batches, the angles.")] = 0,
    size: Size = None,
    color: Color = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train on upright images, measure on moved ones, save the model."""
    from tigranet.architecture import Architecture
    from tigranet.data import NAMED
    from tigranet.experiments.paper import REPORTED
    from tigranet.experiments.runner import run
    from tigranet.training import Recipe

    console = Console(stderr=True, highlight=False)
    data_set = _load(data, seed, data_dir, size, color, console)
    images = len(data_set.train.labels)
    layers = Architecture.parse(architecture or ("paper" if data in NAMED and images > 500 else "paper-small"))
    chosen = {"seed": seed} | ({} if epochs is None else {"epochs": epochs}) | ({} if jitter else {"jitter": 0.0})
    recipe = Recipe.for_images(images, **chosen)
    _check_writable(output)
    console.print(f"{data_set.name}: {images} upright training images, never rotated")
    console.print(f"recipe: {recipe}")
    module, measured = run(data_set, layers, recipe, boundary, console)
    module.save_pretrained(output)
    picture = _draw(output / "rotated.png", module, data_set, console)
    if as_json:
        print(json.dumps(measured.to_json() | {"model": str(output)}))
        return
    paper = REPORTED.get((data_set.name, str(layers)))
    rows = [
        ["training images", f"{measured.train:.1f}", paper.train if paper else ""],
        ["validation images", f"{measured.validation:.1f}", paper.validation if paper else ""],
        ["test images, upright", f"{measured.test:.1f}", paper.test if paper else ""],
    ]
    if data_set.moved.turned or data_set.moved.shifted:
        rows.append([f"test images, {measured.how}", str(measured.moved), paper.moved if paper else ""])
    if data_set.moved.turned:
        rows.append(["same, pixels not interpolated", str(measured.nearest), "-"])
    table = Table("accuracy, %", "measured", *([f"paper, {paper.table}"] if paper else []))
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    print(f"{measured.architecture}, {measured.parameters:,} parameters, trained in {measured.seconds:.0f} s")
    Console().print(table)
    if measured.moved.draws > 1:
        print(f"{measured.how}: mean ± standard deviation of {measured.moved.draws} random draws")
    print(f"saved to {output}" + (f", with a picture: {picture}" if picture else ""))


@app.command(epilog="Example: tigranet evaluate model/ mnist-012")
def evaluate(
    model: Annotated[Path, typer.Argument(help="The folder of a saved model.")],
    data: Data,
    seed: Annotated[int, typer.Option(help="Draws the images and how they are moved; take that of the training.")] = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """The accuracy on test images: upright, rotated and shifted, and what is lost."""
    from tigranet.evaluation import measure
    from tigranet.model import TIGraNet

    net = TIGraNet.from_pretrained(model)
    console = Console(stderr=True, highlight=False)
    data_set = _load(data, seed, data_dir, net.image_size, net.in_maps > 1, console)
    with console.status("measuring"):
        found = measure(net, data_set, seed)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    table = Table(f"{found.images} test images of {data}", "accuracy, %", "drop")
    table.add_row("upright", f"{found.upright:.2f}", "")
    for how, accuracy in found.moved.items():
        table.add_row(how, str(accuracy), f"{found.drop(how):.2f}")
    Console().print(table)


@app.command(epilog="Example: tigranet predict model/ photos/ --csv answers.csv")
def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a saved model.")],
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    csv: Annotated[Path | None, typer.Option(help="Write path, label and probability to this file.")] = None,
    reject: Annotated[float, typer.Option(help="Answer 'unknown' below this probability.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    debug: Debug = False,
) -> None:
    """Name the class of each image, at whatever angle it was taken."""
    from tigranet.data import Broken
    from tigranet.evaluation import answers
    from tigranet.evaluation.table import whole_file, writer
    from tigranet.model import TIGraNet

    net = TIGraNet.from_pretrained(model)
    console = Console(stderr=True, highlight=False)
    broken = []
    with whole_file(csv) as table, console.status("0 images") as status:
        write = writer(table, as_json and csv is None)
        for number, answer in enumerate(answers(net, _files(images), reject), start=1):
            status.update(f"{number} images")
            if isinstance(answer, Broken):
                broken.append(answer)
            else:
                write(answer)
    _print_broken(broken, console)


@app.command(epilog="Example: tigranet report model/ mnist-012 -o report/")
def report(
    model: Annotated[Path, typer.Argument(help="The folder of a saved model.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write the page to.")] = Path("report"),
    cnn: Annotated[bool, typer.Option(help="Train a plain CNN of the same size to compare with.")] = True,
    epochs: Annotated[
        int | None, typer.Option(help="Passes of the CNN over the training images.  [default: fewer for more images]")
    ] = None,
    images: Annotated[int, typer.Option(min=1, help="Draw the curves with at most this many test images.")] = 1000,
    seed: Annotated[int, typer.Option(help="Draws the images and how they are moved; take that of the training.")] = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """A page to look at: accuracy and confidence at every angle and shift, classes, mistakes, beside a plain CNN."""
    import torch

    from tigranet.evaluation.report import report_on
    from tigranet.evaluation.rival import plain_cnn
    from tigranet.evaluation.robustness import check_fits
    from tigranet.model import TIGraNet
    from tigranet.training import Recipe

    try:
        from tigranet.figures.report import save_report
    except ModuleNotFoundError:
        raise ImportError(
            "a report has figures, for which matplotlib is missing: pip install 'tigranet[figures]'"
        ) from None
    net = TIGraNet.from_pretrained(model)
    _check_writable(output, "report")
    console = Console(stderr=True, highlight=False)
    data_set = _load(data, seed, data_dir, net.image_size, net.in_maps > 1, console)
    check_fits(net, data_set)
    command = shlex.join(["tigranet", *sys.argv[1:]])
    made = {"command": command, "model": str(model), "boundary": net.boundary}
    rival = None
    if cnn:
        recipe = Recipe.for_images(
            len(data_set.train.labels), **({"seed": seed} | ({} if epochs is None else {"epochs": epochs}))
        )
        console.print(f"training a plain CNN to compare with: {recipe}")
        rival, made["recipe"] = plain_cnn(net, data_set, recipe, console), str(recipe)
    found = report_on(
        net.to("cuda" if torch.cuda.is_available() else "cpu"),
        data_set,
        rival,
        seed=seed,
        curve_images=images,
        how_split=_how_split(data, seed),
        made=made,
        console=console,
    )
    page = save_report(output, found, data_set.test)
    if as_json:
        print(json.dumps(found.to_json() | {"page": str(page)}))
        return
    table = Table("accuracy, %", *(subject.name for subject in found.subjects))
    table.add_row("upright", *(f"{subject.robustness.upright:.1f}" for subject in found.subjects))
    for how in found.subjects[0].robustness.moved:
        table.add_row(how, *(str(subject.robustness.moved[how]) for subject in found.subjects))
    Console().print(table)
    print(f"open {page}")


@data_app.command("list", epilog="Example: tigranet data list")
def list_data(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """The named data sets, and which of them can be loaded now."""
    from tigranet.data import NAMED, data_folder

    folder = data_folder(data_dir)
    there = {name: named.source.there(folder) for name, named in NAMED.items()}
    if as_json:
        print(json.dumps({name: {"about": NAMED[name].about, "there": is_there} for name, is_there in there.items()}))
        return
    table = Table("name", "what it is", "source", "there")
    for name, named in NAMED.items():
        table.add_row(name, named.about, named.source.name, "yes" if there[name] else "no")
    Console().print(table)
    print(f"data folder: {folder}")


@data_app.command(epilog="Example: tigranet data fetch --data-dir data/")
def fetch(data_dir: DataDir = None, debug: Debug = False) -> None:
    """Download MNIST from its public mirrors; what is there already is kept."""
    from tigranet.data import data_folder
    from tigranet.data.fetch import fetch_mnist

    folder = data_folder(data_dir)
    for path in fetch_mnist(folder, Console(stderr=True, highlight=False)):
        print(path)


@data_app.command(epilog="Example: tigranet data check --data-dir data/")
def check(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """Load every source in the data folder and verify what it holds."""
    from tigranet.data import data_folder
    from tigranet.data.named import check_sources

    folder = data_folder(data_dir)
    found = check_sources(folder)
    if as_json:
        print(json.dumps(found))
    else:
        table = Table("source", "verdict")
        for source, verdict in found.items():
            table.add_row(source, verdict)
        Console().print(table)
        print(f"data folder: {folder}")
    if any(verdict.startswith("bad") for verdict in found.values()):
        raise ValueError("some data are bad: delete those files and fetch them again")


def _load(data: str, seed: int, data_dir: Path | None, size: int | None, color: bool, console: Console) -> "DataSet":
    """A named set, or a folder of images."""
    from tigranet.data import NAMED, load, load_folder

    if data in NAMED or not Path(data).is_dir():
        return load(data, seed, data_dir)
    with console.status("reading images") as status:
        read = count(1)
        data_set, broken = load_folder(
            Path(data), seed, size, color, lambda: status.update(f"reading images: {next(read)}")
        )
    _print_broken(broken, console)
    return data_set


def _how_split(data: str, seed: int) -> str:
    """For the reader of a report."""
    from tigranet.data import NAMED
    from tigranet.data.image_folder import HELD_OUT

    if data in NAMED:
        return f"{NAMED[data].about}; drawn by seed {seed}"
    drawn = f"{HELD_OUT:.0%} of each class to validate and as many to test, drawn by seed {seed}"
    has_parts = any(path.is_dir() and path.name.lower() == "train" for path in Path(data).iterdir())
    return (
        f"by the folders train, val and test; what is missing of them is drawn by seed {seed}" if has_parts else drawn
    )


def _files(paths: list[Path]) -> "Iterator[Path]":
    from tigranet.data import image_files

    for path in paths:
        yield from image_files(path) if path.is_dir() else [path]


def _print_broken(broken: "list[Broken]", console: Console) -> None:
    for file in broken:
        console.print(f"left out: {file.path}: {file.reason}", markup=False)


def _check_writable(folder: Path, what: str = "model") -> None:
    """Before an hour's work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a {what} is saved to a folder, got the file '{folder}'")
    parent = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise PermissionError(f"'{folder}' cannot be written: '{parent}' is not a folder that you may write to")


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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files are bytes, not always UTF-8
    try:
        app()
    except Exception as error:
        if "--debug" in sys.argv:  # an option of every command, for its help; needed where no command is left
            raise
        kind = "" if isinstance(error, ValueError | TypeError | OSError | ImportError) else f"{type(error).__name__}: "
        print(f"tigranet: {kind}{error}", file=sys.stderr)
        sys.exit(1)
