"""``tigranet train``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.choices import Accelerator, Boundary, Keep, Log, Precision, Schedule
from tigranet.cli.options import (
    HARDWARE_PANEL,
    Data,
    DataDir,
    Json,
    global_options,
    recipe_option,
    typed_command,
)
from tigranet.cli.output import print_unreadable_files, printing_may_fail, progress_console
from tigranet.cli.train_options import (
    ArchitectureOption,
    Color,
    ExtraMinutes,
    FoldsOption,
    Group,
    Init,
    Margin,
    Overwrite,
    Quick,
    Resume,
    Seed,
    Size,
    TrainImages,
    WindowChoice,
)
from tigranet.cli.training_result import print_training_result


def _hardware(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=HARDWARE_PANEL)


def train(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to save the model to.")] = Path("model"),
    architecture: ArchitectureOption = None,
    boundary: Annotated[
        Boundary, typer.Option(help="free is the paper's grid; torus makes the invariance to shifts exact.")
    ] = "free",
    window: WindowChoice = "auto",
    margin: Margin = 0,
    seed: Seed = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    size: Size = None,
    color: Color = None,
    group: Group = None,
    train_images: TrainImages = None,
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
    accumulate: Annotated[int | None, recipe_option("accumulate")] = None,
    balanced: Annotated[bool | None, recipe_option("balanced")] = None,
    keep: Annotated[Keep | None, recipe_option("keep")] = None,
    patience: Annotated[int | None, recipe_option("patience")] = None,
    quick: Quick = False,
    folds: FoldsOption = None,
    extra_minutes: ExtraMinutes = 60.0,
    init: Init = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    log: Annotated[Log, _hardware("Format of the losses, which are written beside the checkpoints.")] = "csv",
    checkpoint_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps between checkpoints within an epoch.",
            show_default="1000",
            rich_help_panel=HARDWARE_PANEL,
        ),
    ] = None,
    accelerator: Annotated[Accelerator, _hardware("Kind of device to train on; --device is more general.")] = "auto",
    devices: Annotated[int, _hardware("Number of devices.")] = 1,
    nodes: Annotated[int, _hardware("Number of machines.")] = 1,
    strategy: Annotated[str, _hardware("Lightning's strategy for several devices, such as ddp.")] = "auto",
    precision: Annotated[Precision, _hardware("Precision of matrix products; on a CPU, tf32 means 32.")] = "auto",
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
        "accumulate": accumulate,
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
            init=None if init == "none" else init,
            quick=quick,
            first=True,
            folds=folds,
            extra_minutes=extra_minutes,
            overwrite=overwrite,
            resume=resume,
            log=log,
            checkpoint_steps=checkpoint_steps,
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
            print_training_result(trained)
