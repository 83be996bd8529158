"""The ``tigranet`` command: parses, calls, prints."""

import io
import json
import os
import shlex
import sys
import warnings
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from tigranet.atomic_files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from tigranet.data import DataSet, UnreadableFile
    from tigranet.model import TIGraNet
    from tigranet.reproduction.experiment import TableSpec

TRAINING = "training.json"
"""In a model's folder: how it was trained, on what, and what was measured."""
Boundary = Literal["free", "torus"]  # these as in tigranet.graphs and tigranet.training, which are slow to load
Schedule = Literal["one-cycle", "cosine"]
Keep = Literal["last", "best"]
Log = Literal["csv", "tensorboard"]
Accelerator = Literal["auto", "cpu", "gpu"]
Precision = Literal["tf32", "32", "bf16", "16"]

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
Model = Annotated[Path, typer.Argument(help="The folder of a saved model.")]
Images = Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")]
Data = Annotated[
    str,
    typer.Argument(
        help="A folder with one sub-folder a class, a CSV file of paths and labels, an .npz file of images and labels, "
        "or the name of a data set ('tigranet data list')."
    ),
]
DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the named data sets; else TIGRANET_DATA, else the user's cache.")
]
OWN, LEARN, RUN = "Your own images", "Learning", "Running"
MANY = 10_000
"""Training images, above which a network of more parameters is the better one."""
Group = Annotated[
    str | None,
    typer.Option(
        help="Never split a group (the views of one object): a column of the CSV, an array of the .npz, or a regular "
        "expression that finds it in the path below the folder.",
        rich_help_panel=OWN,
    ),
]
TrainImages = Annotated[
    int | None, typer.Option(help="Draw so many images to train, test on all others.", rich_help_panel=OWN)
]
LARGEST_SEED = 2**63 - 1
SplitSeed = Annotated[
    int | None,
    typer.Option(min=0, max=LARGEST_SEED, help="Draws how images are moved.", show_default="that of the training"),
]
Rivals = Annotated[
    bool, typer.Option("--rivals", help="Train the paper's ConvNet and STN, and draw their answers as well.")
]
RivalEpochs = Annotated[
    int | None,
    typer.Option("--epochs", min=1, help="Passes of the two over the training images.", show_default="as usual"),
]
Csv = Annotated[Path | None, typer.Option(help="Write the rows to this file.")]
Parquet = Annotated[Path | None, typer.Option(help="Write the rows to this file, as Parquet.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]


def _learn(help: str, default: bool | str = True) -> Any:
    return typer.Option(help=help, show_default=default, rich_help_panel=LEARN)


def _run(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=RUN)


@app.command(epilog="Example: tigranet train mnist-012 -o model/")
def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to save the model to.")] = Path("model"),
    architecture: Annotated[
        str | None,
        typer.Option(
            help="A preset (paper-small and paper are the paper's), or layers such as 'SC[3,3]-S[10]-FC[50]'.",
            show_default="oriented-small, or oriented for more than 10,000 images",
        ),
    ] = None,
    boundary: Annotated[Boundary, typer.Option(help="free is the paper's grid; torus makes shifts exact.")] = "free",
    seed: Annotated[
        int,
        typer.Option(min=0, max=LARGEST_SEED, help="Draws the images, the starting weights, the batches, the angles."),
    ] = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
    size: Annotated[
        int | None,
        typer.Option(
            min=2, max=2048, help="Bring images to this size.", show_default="theirs, at most 64", rich_help_panel=OWN
        ),
    ] = None,
    color: Annotated[
        bool, typer.Option("--color", help="Use all channels, not their grey.", rich_help_panel=OWN)
    ] = False,
    group: Group = None,
    train_images: TrainImages = None,
    epochs: Annotated[int | None, _learn("Passes over the training images.", "fewer for more images")] = None,
    batch_size: Annotated[int | None, _learn("Images a step.", "50, or 250 for many")] = None,
    learning_rate: Annotated[
        float | None, _learn("The highest rate.", "0.01, or 0.003 for large networks and those with MC")
    ] = None,
    schedule: Annotated[Schedule, _learn("How the rate goes.")] = "one-cycle",
    jitter: Annotated[bool, _learn("Shift each training image by up to half a pixel.")] = True,
    zoom: Annotated[
        float | None,
        _learn("Enlarge or shrink each training image by up to this part of its size.", "0, or 0.2 with MC"),
    ] = None,
    stretch: Annotated[
        float | None,
        _learn("Draw each training image out along a random axis by up to this part.", "0, or 0.15 with MC"),
    ] = None,
    warp: Annotated[
        float | None,
        _learn(
            "Move its pixels by slow waves, by about this part of its size.", "0, or 0.035 with MC; 0.05 for few images"
        ),
    ] = None,
    tone: Annotated[
        float | None,
        _learn("Make it lighter or darker, along a curve of about this strength.", "0, or 0.5 with MC for few images"),
    ] = None,
    smoothing: Annotated[
        float | None, _learn("Spread this part of each label over all classes.", "0, or 0.05 with MC")
    ] = None,
    balanced: Annotated[bool, _learn("Let all classes count the same, however many images they have.")] = False,
    keep: Annotated[Keep, _learn("The weights at the end, or those of the lowest validation loss.")] = "last",
    patience: Annotated[
        int | None, _learn("Stop when the validation loss has not fallen for so many epochs; keep the best.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was broken off.", rich_help_panel=RUN)
    ] = False,
    log: Annotated[Log, _run("What to write losses for, beside the checkpoints in the output folder.")] = "csv",
    accelerator: Annotated[Accelerator, _run("What to train on.")] = "auto",
    devices: Annotated[int, _run("How many of them.")] = 1,
    nodes: Annotated[int, _run("How many machines.")] = 1,
    strategy: Annotated[str, _run("Lightning's strategy for several, such as ddp.")] = "auto",
    precision: Annotated[Precision, _run("Of matrix products; tf32 is 32 on a CPU.")] = "tf32",
    deterministic: Annotated[bool, _run("The same bits each time on a GPU too.")] = False,
) -> None:
    """Train on upright images, measure on moved ones, save the model."""
    from tigranet.architecture import PRESETS, Architecture
    from tigranet.reproduction.model_card import card
    from tigranet.reproduction.paper import REPORTED
    from tigranet.reproduction.runner import recipe_for, run
    from tigranet.training import Hardware, is_first_process
    from tigranet.training.checkpoints import LAST

    console = Console(stderr=True, highlight=False, quiet=not is_first_process())
    _check_writable(output)
    hardware = Hardware(accelerator, devices, nodes, strategy, precision, deterministic)
    data_set = _load(data, seed, data_dir, console, size, color, group, train_images)
    images = len(data_set.train.labels)
    layers = Architecture.parse(architecture or ("oriented" if images > MANY else "oriented-small"))
    given = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "zoom": zoom}
    given |= {"stretch": stretch, "warp": warp, "tone": tone, "smoothing": smoothing, "patience": patience}
    chosen = {name: value for name, value in given.items() if value is not None} | ({} if jitter else {"jitter": 0.0})
    recipe = recipe_for(data_set, layers, **chosen, schedule=schedule, balanced=balanced, keep=keep, seed=seed)
    console.print(f"{data_set.name}: {images} upright training images, never rotated")
    console.print(f"recipe: {recipe}")
    how = {"hardware": hardware, "folder": output / "checkpoints", "resume": resume, "log": log}
    try:
        module, measured = run(data_set, layers, recipe, boundary, console, **how)
    except KeyboardInterrupt:
        begun = (output / "checkpoints" / LAST).exists()
        console.print(
            "stopped: the same command with --resume goes on from the last checkpoint"
            if begun
            else "stopped before the first checkpoint: nothing is kept"
        )
        raise typer.Exit(130) from None
    if not is_first_process():
        return
    command = shlex.join(["tigranet", *sys.argv[1:]])
    module.save_pretrained(output, model_card_kwargs={"about": card(measured, images, command)})
    drawn_by = {"data": data, "seed": seed, "group": group, "train_images": train_images}
    found = measured.to_json() | drawn_by | {"command": command}
    with atomic_write(output / TRAINING) as file:
        json.dump(found | _marked(data, data_set), file, indent=2)
    picture = _draw(output / "rotated.png", module, data_set, console)
    if as_json:
        print(json.dumps(found | {"model": str(output)}))
        return
    paper = REPORTED.get(data_set.name) if str(layers) in PRESETS.values() else None
    validation = "-" if measured.validation is None else f"{measured.validation:.1f}"
    rows = [
        ["training images", f"{measured.train:.1f}", paper.train if paper else ""],
        ["validation images", validation, paper.validation if paper else ""],
        ["test images, upright", f"{measured.test:.1f}", paper.test if paper else ""],
    ]
    if data_set.test_motion.rotated or data_set.test_motion.max_shift:
        rows.append([f"test images, {measured.how}", str(measured.moved), paper.moved if paper else ""])
    if data_set.test_motion.rotated:
        rows.append(["same, pixels not interpolated", str(measured.nearest), "-"])
    table = Table("accuracy, %", "measured", *([f"paper, {paper.table}"] if paper else []))
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    print(f"{measured.architecture}, {measured.parameters:,} parameters, trained in {measured.seconds:.0f} s")
    Console().print(table)
    count = len(data_set.test.labels)
    draws = f"; {measured.how}: mean ± standard deviation of {measured.moved.draws} random draws"
    print(f"{count} test image{'s' * (count != 1)}{draws if measured.moved.draws > 1 else ''}")
    print(f"saved to {output}" + (f", with a picture: {picture}" if picture else ""))


@app.command(epilog="Example: tigranet evaluate model/ mnist-012")
def evaluate(
    model: Model,
    data: Data,
    seed: SplitSeed = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """The accuracy on test images: upright, rotated and shifted, and what is lost.

    Images are drawn to test as they were for training, so none was seen in it. Where images of your own have come or
    gone since, those that were seen are left out.
    """
    from tigranet.evaluation import measure_robustness

    console = Console(stderr=True, highlight=False)
    net, data_set, seed = _load_for(model, data, seed, data_dir, console)
    with console.status("measuring"):
        found = measure_robustness(net, data_set, seed)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    table = Table(f"{found.images} test images of {data_set.name}", "accuracy, %", "drop")
    table.add_row("upright", f"{found.upright:.2f}", "")
    for how, accuracy in found.moved.items():
        table.add_row(how, str(accuracy), f"{found.drop(how):.2f}")
    Console().print(table)


@app.command(epilog="Example: tigranet predict model/ photos/ --csv answers.csv")
def predict(
    model: Model,
    images: Images,
    csv: Csv = None,
    parquet: Parquet = None,
    reject: Annotated[float, typer.Option(help="Prediction 'unknown' below this probability.")] = 0.0,
    as_json: JsonLines = False,
    debug: Debug = False,
) -> None:
    """Name the class of each image, at whatever angle it was taken."""
    from tigranet.data import UnreadableFile
    from tigranet.evaluation import predict_files
    from tigranet.model import TIGraNet

    said = predict_files(TIGraNet.from_pretrained(model), _files(images), reject)
    rows = (answer if isinstance(answer, UnreadableFile) else asdict(answer) for answer in said)
    _write(["path", "label", "probability"], rows, csv, parquet, as_json)


@app.command(epilog="Example: tigranet features model/ photos/ --csv features.csv")
def features(
    model: Model,
    images: Images,
    csv: Csv = None,
    parquet: Parquet = None,
    as_json: JsonLines = False,
    debug: Debug = False,
) -> None:
    """The numbers that do not change when an image is turned, for any other classifier."""
    from tigranet.data import UnreadableFile
    from tigranet.evaluation import feature_names, file_features
    from tigranet.model import TIGraNet

    net = TIGraNet.from_pretrained(model)
    names = feature_names(net)
    rows = (
        phi if isinstance(phi, UnreadableFile) else {"path": str(path)} | dict(zip(names, phi.tolist(), strict=True))
        for path, phi in file_features(net, _files(images))
    )
    _write(["path", *names], rows, csv, parquet, as_json)


@app.command(epilog="Example: tigranet report model/ mnist-012 -o report/")
def report(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write the page to.")] = Path("report"),
    cnn: Annotated[bool, typer.Option(help="Train a plain CNN of the same size to compare with.")] = True,
    epochs: Annotated[
        int | None, typer.Option(help="Passes of the CNN over the training images.", show_default="as the model")
    ] = None,
    images: Annotated[int, typer.Option(min=1, help="Draw the curves with at most this many test images.")] = 1000,
    seed: SplitSeed = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """A page to look at: accuracy and confidence at every angle and shift, classes, mistakes, beside a plain CNN.

    The CNN has as many parameters and is trained on the same images by the same recipe.
    """
    import torch

    from tigranet.evaluation.plain_cnn import plain_cnn
    from tigranet.evaluation.report import report_on
    from tigranet.evaluation.robustness import check_compatible
    from tigranet.reproduction.runner import recipe_for

    try:
        from tigranet.figures.report import save_report
    except ModuleNotFoundError:
        raise ImportError(
            "a report has figures, for which matplotlib is missing: pip install 'tigranet[figures]'"
        ) from None
    _check_writable(output, "report")
    console = Console(stderr=True, highlight=False)
    net, data_set, seed = _load_for(model, data, seed, data_dir, console)
    check_compatible(net, data_set)
    trained = _record(model)
    made = {"command": shlex.join(["tigranet", *sys.argv[1:]]), "model": str(model), "boundary": net.boundary}
    rival = None
    if cnn:
        recipe = recipe_for(data_set, net.architecture, **({"seed": seed} | trained.get("recipe", {})))
        recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
        console.print(f"training a plain CNN to compare with: {recipe}")
        rival, made["recipe"] = plain_cnn(net, data_set, recipe, console), str(recipe)
    found = report_on(
        net.to("cuda" if torch.cuda.is_available() else "cpu"),
        data_set,
        rival,
        seed=seed,
        curve_images=images,
        how_split=_how_split(data, trained),
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


@app.command(epilog="Example: tigranet figures model/ mnist-012 --rivals -o figures/")
def figures(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the pictures.")] = Path("figures"),
    rivals: Rivals = False,
    epochs: RivalEpochs = None,
    seed: SplitSeed = None,
    data_dir: DataDir = None,
    debug: Debug = False,
) -> None:
    """Draw the paper's figures of a network: its filters, what the pooling keeps, its maps of turned images, and with
    --rivals its answers beside theirs."""
    try:
        from tigranet.figures.gallery import save_gallery
    except ModuleNotFoundError:
        raise ImportError("figures are drawn by matplotlib: pip install 'tigranet[figures]'") from None
    from tigranet.evaluation.robustness import check_compatible
    from tigranet.reproduction.rivals import rivals_of

    _check_writable(output, "gallery")
    console = Console(stderr=True, highlight=False)
    net, data_set, seed = _load_for(model, data, seed, data_dir, console)
    check_compatible(net, data_set)
    beside = rivals_of(net, data_set, seed, epochs, console) if rivals else None
    with console.status("drawing"):
        written = save_gallery(output, net, data_set, seed, beside)
    for path in written:
        print(path)


@app.command(epilog="Example: tigranet angles mnist-012 model/ paper-mnist-rot oriented-small -o angles/")
def angles(
    data: Data,
    models: Annotated[
        list[str],
        typer.Argument(help="Saved networks; or presets or layers, for networks that have learned nothing yet."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the picture.")] = Path("angles"),
    rivals: Rivals = False,
    epochs: RivalEpochs = None,
    images: Annotated[int, typer.Option(min=1, help="At most this many test images.")] = 200,
    by: Annotated[int, typer.Option(min=1, max=180, help="Degrees from one angle to the next.")] = 15,
    seed: SplitSeed = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """How far networks are from invariant at every angle: how much their logits change, and how often they are right.

    Accuracy is measured of trained networks with the classes of the data. The images are drawn as for the training of
    the first network, so it has seen none of them.
    """
    from tigranet.evaluation.curves import invariance
    from tigranet.evaluation.row_writer import rows_to
    from tigranet.reproduction.rivals import rivals_of

    try:
        from tigranet.figures.angles import save_invariance
    except ModuleNotFoundError:
        raise ImportError("figures are drawn by matplotlib: pip install 'tigranet[figures]'") from None
    _check_writable(output, "picture")
    console = Console(stderr=True, highlight=False)
    if _is_fresh(models[0]):
        seed = seed or 0
        data_set = _load(data, seed, data_dir, console)
    else:
        _, data_set, seed = _load_for(Path(models[0]), data, seed, data_dir, console)
    named = [Path(model).name for model in models]
    named = named if len(set(named)) == len(set(models)) else models  # two folders of one name
    nets = {name: _network(model, data_set) for name, model in zip(named, models, strict=True)}
    trained = {name for name, model in zip(named, models, strict=True) if not _is_fresh(model)}
    asked: dict[str, nn.Module] = {**nets}
    if rivals:
        asked |= rivals_of(nets[named[0]], data_set, seed, epochs, console)
    test = data_set.test.take(list(range(min(images, len(data_set.test.labels)))))
    at = sorted({*map(float, range(0, 360, by)), 90.0, 180.0, 270.0, 360.0})
    found = {}
    for name, module in asked.items():
        known = name not in nets or (name in trained and nets[name].class_names == tuple(data_set.class_names))
        with console.status(f"turning images for {name}"):
            labels = test.labels if known else None
            found[name] = invariance(module, test.images, labels, data_set.test_motion.padding, at)
    written = save_invariance(output, found, 100 / len(data_set.class_names))
    with rows_to(["network", "degrees", "change", "accuracy"], output / "angles.csv") as write:
        for name, seen in found.items():
            for degrees, change, right in zip(at, seen.change, seen.accuracy or [None] * len(at), strict=True):
                write({"network": name, "degrees": degrees, "change": change, "accuracy": right})
    if as_json:
        print(json.dumps({name: asdict(seen) for name, seen in found.items()}))
        return
    table = Table(title=f"{len(test.labels)} images of {data_set.name}, turned", title_justify="left")
    table.add_column("network", no_wrap=True)
    for column in ("change at quarters", "elsewhere", "accuracy upright", "lowest", "mean, %"):
        table.add_column(column, justify="right")
    for name, seen in found.items():
        rights = ["-"] * 3
        if seen.accuracy is not None:
            mean = sum(seen.accuracy[:-1]) / (len(at) - 1)  # 360 degrees are 0
            rights = [f"{value:.1f}" for value in (seen.accuracy[0], min(seen.accuracy), mean)]
        elsewhere = f"{seen.mean_change(False):.3f}" if any(angle % 90 for angle in at) else "-"
        table.add_row(name, f"{seen.mean_change(True):.1e}", elsewhere, *rights)
    Console().print(table)
    for path in (*written, output / "angles.csv"):
        print(path)


@app.command(epilog="Example: tigranet reproduce table2 --quick")
def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            help="table2, table3, table4 or ablation, of the paper's network; oriented, oriented-ablation or few, of "
            "what goes beyond the paper; or all."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="One seed, and the small sets for MNIST.")] = False,
    seed: Annotated[
        list[int] | None,
        typer.Option(min=0, max=LARGEST_SEED, help="Only these; may be repeated.", show_default="0 to 4"),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method or row; may be repeated.", show_default="all")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Only this data set; may be repeated.", show_default="all")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Cut the training short.", show_default="as usual")] = None,
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Measure nothing; write the table of what is there.")
    ] = False,
    data_dir: DataDir = None,
    debug: Debug = False,
) -> None:
    """Measure a table of the paper and set it beside the paper's, or one of ours. What was measured already is kept.

    Every run is a line of a .jsonl file in the results and a row of a .csv; the table is a .md; few has a curve too, a
    .png and a .svg. Several of these commands may add to the same files at once, each with seeds or methods of its own.
    A run that diverges does not stop the others; it is named at the end.
    """
    from tigranet.reproduction import reproduce as of_paper
    from tigranet.reproduction.tables import TABLES

    console = Console(stderr=True, highlight=False)
    if not render_only:
        _check_writable(output, "table")
    diverged: list[str] = []
    asked = {"methods": method or (), "data": data or ()}
    some = [name for name in TABLES if of_paper.rows_of(TABLES[name], **asked)]
    if render_only:
        some = [name for name in some if of_paper.kept_in(output, name, quick).exists()]
    for name in (some or TABLES) if table == "all" else [table]:
        text, failed = of_paper.reproduce(
            name,
            output,
            seeds=seed or None,
            quick=quick,
            epochs=epochs,
            data_dir=data_dir,
            **asked,
            measure=not render_only,
            command=shlex.join(["tigranet", *sys.argv[1:]]),
            console=console,
        )
        print(text)
        diverged += failed
        if TABLES[name].by_images:
            _draw_by_images(of_paper.kept_in(output, name, quick), TABLES[name], epochs, console)
    if diverged:
        raise ValueError("\n  ".join([f"{len(diverged)} of the runs diverged, and are in no table:", *diverged]))


@app.command(epilog="Example: tigranet bench oriented --size 28")
def bench(
    model: Annotated[
        str, typer.Argument(help="The folder of a saved model, a preset, or layers such as 'SC[3,3]-S[10]-FC[50]'.")
    ] = "paper",
    size: Annotated[int | None, typer.Option(min=2, help="Of the images.", show_default="the model's, or 26")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images a batch.")] = 100,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """How fast it is on this machine: fused kernels beside the plain version.

    On a shared machine set OMP_WAIT_POLICY=passive, or PyTorch's threads take turns with those of others.
    """
    import torch

    from tigranet.evaluation.provenance import machine
    from tigranet.evaluation.speed import measure_speed

    console = Console(stderr=True, highlight=False)
    net = _network(model)
    net.to("cuda" if torch.cuda.is_available() else "cpu")
    side = size or net.image_size or 26
    with console.status("measuring"):
        found = measure_speed(net, side, batch)
    where = machine()
    if as_json:
        about = {"architecture": str(net.architecture), "size": side, "machine": where}
        print(json.dumps(about | {"milliseconds": [asdict(row) for row in found]}))
        return
    device = where["gpu"] or f"{where['cpu']}, {where['threads']} threads"
    print(f"{net.architecture}\n{side} x {side} pixels, on {device}")
    table = Table("milliseconds", "fused", "plain", "times faster", "an image, fused", "plain")
    for row in found:
        each = (f"{time / row.images:.2f}" for time in (row.fused, row.plain))
        table.add_row(row.work, f"{row.fused:.2f}", f"{row.plain:.2f}", f"{row.times:.1f}", *each)
    Console().print(table)


@data_app.command("list", epilog="Example: tigranet data list")
def list_data(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """The named data sets, and which of them can be loaded now."""
    from tigranet.data import REGISTRY, data_folder

    folder = data_folder(data_dir)
    there = {name: named.source.there(folder) for name, named in REGISTRY.items()}
    if as_json:
        print(
            json.dumps({name: {"about": REGISTRY[name].about, "there": is_there} for name, is_there in there.items()})
        )
        return
    table = Table("name", "what it is", "source", "there")
    for name, named in REGISTRY.items():
        table.add_row(name, named.about, named.source.name, "yes" if there[name] else "no")
    Console().print(table)
    print(f"data folder: {folder}")


@data_app.command(epilog="Example: tigranet data fetch --data-dir data/")
def fetch(data_dir: DataDir = None, debug: Debug = False) -> None:
    """Download MNIST from its public mirrors; what is there already is kept."""
    from tigranet.data import data_folder
    from tigranet.data.sources.download import fetch_mnist

    folder = data_folder(data_dir)
    for path in fetch_mnist(folder, Console(stderr=True, highlight=False)):
        print(path)


@data_app.command(epilog="Example: tigranet data check --data-dir data/")
def check(data_dir: DataDir = None, as_json: Json = False, debug: Debug = False) -> None:
    """Load every source in the data folder and verify what it holds."""
    from tigranet.data import data_folder
    from tigranet.data.sources.registry import check_sources

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


def _load(
    data: str,
    seed: int,
    data_dir: Path | None,
    console: Console,
    size: int | None = None,
    color: bool = False,
    group: str | None = None,
    train_images: int | None = None,
) -> "DataSet":
    """A named set, or somebody's own images."""
    from tigranet.data import REGISTRY, is_user_data, load, load_user_data

    if data in REGISTRY or not is_user_data(Path(data)):
        if Path(data).is_dir():
            console.print(f"'{data}' is the name of a data set; for the folder, write './{data}'")
        return load(data, seed, data_dir)
    with console.status("reading images") as status:
        read = count(1)
        data_set, broken = load_user_data(
            Path(data), seed, size, color, group, train_images, lambda: status.update(f"reading images: {next(read)}")
        )
    _print_broken(broken, console)
    return data_set


def _is_fresh(model: str) -> bool:
    """Whether it is an architecture, and not a saved network."""
    from tigranet.architecture import PRESETS

    return not Path(model).is_dir() and (model in PRESETS or "[" in model)


def _network(model: str, data: "DataSet | None" = None) -> "TIGraNet":
    """A saved network; or a fresh one of that architecture, which of the training images of ``data`` knows how large
    its maps and statistics usually are, and nothing more."""
    import torch

    from tigranet.model import TIGraNet

    if not _is_fresh(model):
        saved = TIGraNet.from_pretrained(model)
        if data is not None and saved.in_maps != (maps := data.train.images.shape[1]):
            raise ValueError(
                f"'{model}' reads images of {saved.in_maps} channels, those of {data.name} have {maps}: "
                "compare networks that were all trained in colour, or all in grey"
            )
        return saved
    if data is None:
        return TIGraNet(model, num_classes=9)
    images = data.train.images[:256]
    net = TIGraNet(model, len(data.class_names), images.shape[1])
    with torch.no_grad():
        net(images)
    return net


def _record(model: Path) -> dict[str, Any]:
    """How a model was trained, where its folder says so."""
    record = Path(model, TRAINING)
    return json.loads(record.read_text()) if record.is_file() else {}


def _load_for(
    model: Path, data: str, seed: int | None, data_dir: Path | None, console: Console
) -> "tuple[TIGraNet, DataSet, int]":
    """A saved network, the data brought to what it reads and drawn as for its training, and the seed."""
    from tigranet.data.leakage import content_hash, exclude_images
    from tigranet.model import TIGraNet

    net = TIGraNet.from_pretrained(model)
    drawn = _record(model)
    drawn_by = int(drawn.get("seed", 0))
    color = net.in_maps > 1
    own = (net.image_size, color, drawn.get("group"), drawn.get("train_images"))
    data_set = _load(data, drawn_by, data_dir, console, *own)
    if "seen" in drawn and content_hash(data_set.test.images) != drawn["tested"]:  # whoever adds a file draws all anew
        every, data_set = data_set, exclude_images(data_set, set(drawn["seen"].split()))
        if left := len(every.test.labels) - len(data_set.test.labels):
            console.print(
                f"{data_set.name} is not what it was when the model was trained: of {len(every.test.labels)} images "
                f"drawn to test it was trained on {left}, which are left out"
            )
    return net, data_set, drawn_by if seed is None else seed


def _marked(data: str, data_set: "DataSet") -> dict[str, str]:
    """Of a user's own images, what a model was trained on, and what tests it."""
    from tigranet.data import REGISTRY
    from tigranet.data.leakage import content_hash

    if data in REGISTRY:
        return {}
    return {"seen": " ".join(map(content_hash, data_set.train.images)), "tested": content_hash(data_set.test.images)}


def _how_split(data: str, drawn: dict[str, Any]) -> str:
    """For the reader of a report."""
    from tigranet.data import REGISTRY
    from tigranet.data.splits import HELD_OUT

    by = f"drawn by seed {drawn.get('seed', 0)}"
    if data in REGISTRY:
        return f"{REGISTRY[data].about}; {by}"
    if drawn.get("train_images"):
        return f"{drawn['train_images']} images to train, all others to test, {by}"
    kept = f"; images of one group ({drawn['group']}) stay together" if drawn.get("group") else ""
    return f"as its parts say; without parts, {HELD_OUT:.0%} of each class to validate and as many to test, {by}{kept}"


def _files(paths: list[Path]) -> "Iterator[Path]":
    from tigranet.data import image_files

    if missing := [str(path) for path in paths if not path.exists()]:
        raise FileNotFoundError(f"there is no file or folder '{', '.join(missing)}'")
    return (file for path in paths for file in (image_files(path) if path.is_dir() else [path]))


def _write(
    names: list[str],
    rows: "Iterator[dict[str, Any] | UnreadableFile]",
    csv: Path | None,
    parquet: Path | None,
    as_json: bool,
) -> None:
    """Rows as they come; at the end, the files that there are none of. Where there is no row at all that is an error,
    and a file that was there stays."""
    from tigranet.data import UnreadableFile
    from tigranet.evaluation.row_writer import rows_to

    if sum((csv is not None, parquet is not None, as_json)) > 1:
        raise ValueError("rows are written in one way: give one of --csv, --parquet and --json")
    console = Console(stderr=True, highlight=False)
    broken: list[UnreadableFile] = []
    number = 0
    with rows_to(names, csv, parquet, as_json) as write, console.status("0 images") as status:
        for number, row in enumerate(rows, start=1):
            status.update(f"{number} images")
            if isinstance(row, UnreadableFile):
                broken.append(row)
            else:
                write(row)
        if len(broken) == number:
            _print_broken(broken, console)
            raise ValueError("none of the images could be used" if broken else "there are no images")
    _print_broken(broken, console)


def _print_broken(broken: "list[UnreadableFile]", console: Console) -> None:
    if broken:
        console.print(f"{len(broken)} file{'s were' if len(broken) > 1 else ' was'} left out:")
    for file in broken:
        console.print(f"  {file.path}: {file.reason}", markup=False, soft_wrap=True)


def _check_writable(folder: Path, what: str = "model") -> None:
    """Before an hour's work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a {what} is saved to a folder, got the file '{folder}'")
    parent = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise PermissionError(f"'{folder}' cannot be written: '{parent}' is not a folder that you may write to")


def _draw(path: Path, module: "TIGraNet", data_set: "DataSet", console: Console) -> Path | None:
    try:
        from tigranet.figures.rotated_examples import save_rotated
    except ModuleNotFoundError:
        console.print("no picture without matplotlib: pip install 'tigranet\\[figures]'")
        return None
    save_rotated(path, module, data_set.test, data_set.class_names, data_set.test_motion.padding)
    return path


def _draw_by_images(kept: Path, table: "TableSpec", epochs: int | None, console: Console) -> None:
    from tigranet.reproduction.results_file import records

    try:
        from tigranet.figures.training_size import save_by_images
    except ModuleNotFoundError:
        console.print("no picture without matplotlib: pip install 'tigranet\\[figures]'")
        return
    for path in save_by_images(kept.with_suffix(""), table, records(kept), epochs):
        console.print(f"drawn: {path}", soft_wrap=True)


def main() -> None:
    """Run the command; an error is one line, a traceback only with --debug."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files are bytes, not always UTF-8
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", "Image size .* exceeds limit")  # such an image is left out, and named
    try:
        app()
    except KeyboardInterrupt:
        print("tigranet: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if "--debug" in sys.argv:  # an option of every command, for its help; needed where no command is left
            raise
        kind = "" if isinstance(error, ValueError | TypeError | OSError | ImportError) else f"{type(error).__name__}: "
        print(f"tigranet: {kind}{error}", file=sys.stderr)
        sys.exit(1)
