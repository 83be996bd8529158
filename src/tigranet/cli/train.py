"""``tigranet train``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tigranet.choices import Accelerator, Boundary, Keep, Log, Precision, Schedule, WindowOption
from tigranet.cli.options import (
    HARDWARE_PANEL,
    MAX_SEED,
    USER_DATA_PANEL,
    Data,
    DataDir,
    Json,
    global_options,
    recipe_option,
    typed_command,
)
from tigranet.cli.output import print_line, print_table, print_unreadable_files, printing_may_fail, progress_console

if TYPE_CHECKING:
    from tigranet.workflows.train import TrainedModel


def _user_data(help: str, **settings: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=USER_DATA_PANEL, **settings)


def _hardware(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=HARDWARE_PANEL)


def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to save the model to.")] = Path("model"),
    architecture: Annotated[
        str | None,
        typer.Option(
            help="A preset (paper-small and paper are the paper's), or layers such as 'SC[3,3]-S[10]-FC[50]'.",
            show_default="oriented-small, or oriented above 10,000 training images",
        ),
    ] = None,
    boundary: Annotated[
        Boundary, typer.Option(help="free is the paper's grid; torus makes the invariance to shifts exact.")
    ] = "free",
    window: Annotated[
        WindowOption,
        typer.Option(
            help="disc fades out the corners of the images, which a rotation moves out of the frame; auto is disc for "
            "networks with LC layers if most training images fill their frame, and none otherwise."
        ),
    ] = "auto",
    margin: Annotated[
        int,
        typer.Option(min=0, help="Width in pixels of a border around the images that repeats their outermost pixels."),
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_SEED, help="Seed of the split, the initial weights, the batches and the test rotations."
        ),
    ] = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    size: Annotated[
        int | None,
        _user_data("Side length in pixels.", min=2, max=2048, show_default="that of the images, at most 64"),
    ] = None,
    color: Annotated[
        bool,
        typer.Option(
            "--color", help="Keep all channels instead of converting to grey.", rich_help_panel=USER_DATA_PANEL
        ),
    ] = False,
    group: Annotated[
        str | None,
        _user_data(
            "Keep images of one group, such as the views of one object, in the same part: a column of the CSV file, an "
            "array of the .npz file, or a regular expression for the path below the folder."
        ),
    ] = None,
    train_images: Annotated[
        int | None, _user_data("Training images, 1 or more per class; the rest are tested.")
    ] = None,
    epochs: Annotated[int | None, recipe_option("epochs")] = None,
    batch_size: Annotated[int | None, recipe_option("batch_size")] = None,
    learning_rate: Annotated[float | None, recipe_option("learning_rate")] = None,
    weight_decay: Annotated[float | None, recipe_option("weight_decay")] = None,
    schedule: Annotated[Schedule | None, recipe_option("schedule")] = None,
    jitter: Annotated[bool | None, recipe_option("jitter")] = None,
    shift: Annotated[float | None, recipe_option("shift")] = None,
    flip: Annotated[bool | None, recipe_option("flip")] = None,
    zoom: Annotated[float | None, recipe_option("zoom")] = None,
    stretch: Annotated[float | None, recipe_option("stretch")] = None,
    warp: Annotated[float | None, recipe_option("warp")] = None,
    tone: Annotated[float | None, recipe_option("tone")] = None,
    tint: Annotated[float | None, recipe_option("tint")] = None,
    blur: Annotated[float | None, recipe_option("blur")] = None,
    cutout: Annotated[float | None, recipe_option("cutout")] = None,
    smoothing: Annotated[float | None, recipe_option("smoothing")] = None,
    dropout: Annotated[float | None, recipe_option("dropout")] = None,
    average: Annotated[float | None, recipe_option("average")] = None,
    balanced: Annotated[bool | None, recipe_option("balanced")] = None,
    keep: Annotated[Keep | None, recipe_option("keep")] = None,
    patience: Annotated[int | None, recipe_option("patience")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fit a linear classifier to invariant features in seconds instead of training: a first model.",
        ),
    ] = False,
    init: Annotated[
        str | None,
        typer.Option(
            help="Start from this network instead of random weights: the folder of a saved model, or the name of a "
            "shipped one. Classes of the same name keep what they have learned.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is already in the output folder.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted training.", rich_help_panel=HARDWARE_PANEL),
    ] = False,
    log: Annotated[Log, _hardware("Format of the losses, which are written beside the checkpoints.")] = "csv",
    accelerator: Annotated[Accelerator, _hardware("Kind of device to train on; --device is more general.")] = "auto",
    devices: Annotated[int, _hardware("Number of devices.")] = 1,
    nodes: Annotated[int, _hardware("Number of machines.")] = 1,
    strategy: Annotated[str, _hardware("Lightning's strategy for several devices, such as ddp.")] = "auto",
    precision: Annotated[Precision, _hardware("Precision of matrix products; on a CPU, tf32 means 32.")] = "tf32",
    deterministic: Annotated[bool, _hardware("Use only deterministic operations on a GPU.")] = False,
) -> None:
    """Train on images, save the model, and measure it on rotated and shifted images."""
    from tigranet.devices import select_accelerator
    from tigranet.training import Hardware, is_first_process
    from tigranet.workflows.train import can_resume
    from tigranet.workflows.train import train as train_model

    values = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "jitter": 0.0 if jitter is False else None,
        "shift": shift,
        "flip": flip,
        "zoom": zoom,
        "stretch": stretch,
        "warp": warp,
        "tone": tone,
        "tint": tint,
        "blur": blur,
        "cutout": cutout,
        "smoothing": smoothing,
        "dropout": dropout,
        "average": average,
        "balanced": balanced,
        "keep": keep,
        "patience": patience,
    }
    kind = select_accelerator(global_options().device, accelerator)
    console = progress_console(quiet=not is_first_process())
    try:
        trained = train_model(
            data,
            output,
            architecture=architecture,
            boundary=boundary,
            window=window,
            margin=margin,
            seed=seed,
            size=size,
            color=color,
            group=group,
            train_images=train_images,
            data_dir=data_dir,
            recipe={name: value for name, value in values.items() if value is not None},
            hardware=Hardware(kind, devices, nodes, strategy, precision, deterministic),
            init=init,
            quick=quick,
            first=True,
            overwrite=overwrite,
            resume=resume,
            log=log,
            command=typed_command(),
            console=console,
        )
    except KeyboardInterrupt as interrupt:
        hint = (
            "the same command with --resume continues from the last checkpoint"
            if can_resume(output)
            else "there is no checkpoint yet, so nothing is kept"
        )
        console.print(f"stopped: {' '.join(getattr(interrupt, '__notes__', [hint]))}")
        raise typer.Exit(130) from None
    if not is_first_process():
        return
    with printing_may_fail(console, f"the model is saved in '{output}'"):
        print_unreadable_files(trained.unreadable_files, console)
        if as_json:
            print(json.dumps({**trained.record, "model": str(output)}))
        else:
            _print(trained)


def _print(trained: "TrainedModel") -> None:
    """Print the accuracies beside those of the paper, if it has any for this data set."""
    result, paper, motion = trained.result, trained.paper, trained.data.test_motion
    validation = "-" if result.validation is None else f"{result.validation:.1f}"
    rows = [
        ["training images", f"{result.train:.1f}", paper.train if paper else ""],
        ["validation images", validation, paper.validation if paper else ""],
    ]
    if result.test is None:
        rows.append(["test images", "no test images", ""])
    else:
        rows.append(
            [
                f"test images, {trained.data.orientation or trained.data.unmoved}",
                f"{result.test:.1f}",
                paper.test if paper else "",
            ]
        )
        if motion.rotated or motion.max_shift:
            rows.append([f"test images, {result.how}", str(result.moved), paper.moved if paper else ""])
        if motion.rotated:
            rows.append(["same, pixels not interpolated", str(result.nearest), "-"])
    table = Table("accuracy, %", "measured", *([f"paper, {paper.table}"] if paper else []))
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    print(f"{result.architecture}, {result.parameters:,} parameters, trained in {result.seconds:.0f} s")
    if trained.comparison is not None:
        print(trained.comparison)
    print_table(table)
    print(_describe_test(trained))
    if trained.calibration is not None:
        print(trained.calibration.describe())
    shown = "a picture" if result.test is not None else "a picture of validation images"
    print_line(f"saved to {trained.folder}" + (f", with {shown}: {trained.picture}" if trained.picture else ""))


def _describe_test(trained: "TrainedModel") -> str:
    result, data = trained.result, trained.data
    if result.moved is None:
        return "no test images, so the accuracy on new images is not known"
    images, draws, untested = len(data.test.labels), result.moved.draws, len(data.untested_classes)
    movements = f"; {result.how}: mean ± standard deviation of {draws} random movements" if draws > 1 else ""
    classes = f"; {untested} of the {len(data.class_names)} classes have none" if untested else ""
    return f"{images} test image{'s' * (images != 1)}{classes}{movements}"
