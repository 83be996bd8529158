"""Options that several commands share."""

import shlex
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tigranet.choices import InferencePrecision
from tigranet.recipe_parameters import RECIPE_PARAMETERS

MAX_SEED = 2**63 - 1
"""The largest seed that PyTorch accepts."""
USER_DATA_PANEL, RECIPE_PANEL, HARDWARE_PANEL = "Your own images", "Training", "Hardware and files"
"""Headings in the help of ``tigranet train``."""

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
# readable=False: a file without permission is reported in one line, as by the library.
Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", readable=False)]
Images = Annotated[
    list[Path],
    typer.Argument(
        help="Image files or folders of them, zip archives, .npz files of images, CSV files with a column of paths, "
        "text files with one path per line (.txt), or '-' to read paths or one image from standard input.",
        readable=False,
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        help="A folder with one sub-folder per class, a CSV file of paths and labels, an .npz file of images and "
        "labels, a folder of shards ('tigranet data shard'), or the name of a data set ('tigranet data list')."
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the named data sets.", show_default="TIGRANET_DATA, or the user's cache"),
]
MovementSeed = Annotated[
    int | None,
    typer.Option(
        min=0, max=MAX_SEED, help="Seed of the random movements of images.", show_default="that of the training"
    ),
]
Baselines = Annotated[
    bool, typer.Option("--rivals", help="Also train the paper's ConvNet and STN, and show their answers.")
]
BaselineEpochs = Annotated[
    int | None,
    typer.Option("--epochs", min=1, help="Number of epochs of these two.", show_default="chosen by the data"),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Also give each image a set of labels that contains the true one with this probability, such as 0.95.",
        show_default="no label sets",
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        help="Predict 'unknown' for images that resemble none of the classes: the share of known images to accept, "
        "'auto' (0.95 if the model has a detector), or 'off'.",
        metavar="auto|off|SHARE",
    ),
]
Precision = Annotated[
    InferencePrecision,
    typer.Option(
        help="Precision of the graph layers. 'auto' is bf16 for networks with group convolutions on GPUs that "
        "compute with it, and 32 for others."
    ),
]
Csv = Annotated[Path | None, typer.Option(help="Write the rows to this CSV file.", readable=False)]
Parquet = Annotated[Path | None, typer.Option(help="Write the rows to this Parquet file.", readable=False)]


def recipe_option(name: str) -> Any:
    """Return the option of a training parameter, described as everywhere else.

    Args:
        name: A name of :data:`tigranet.recipe_parameters.RECIPE_PARAMETERS`.

    Returns:
        The option, for an annotation.
    """
    parameter = RECIPE_PARAMETERS[name]
    return typer.Option(help=parameter.help, show_default=parameter.default, rich_help_panel=RECIPE_PANEL)


@dataclass(frozen=True)
class GlobalOptions:
    """Options that every command accepts."""

    device: str = "auto"
    """The device to compute on, see :func:`tigranet.devices.select_device`."""


_current_options: ContextVar[GlobalOptions] = ContextVar("global_options")


def set_global_options(options: GlobalOptions) -> None:
    """Remember the global options for the command that runs next.

    Args:
        options: The options.
    """
    _current_options.set(options)


def global_options() -> GlobalOptions:
    """Return the global options of the command that runs now."""
    return _current_options.get(GlobalOptions())


def typed_command() -> str:
    """Return the command as the user typed it, quoted for a shell."""
    return shlex.join(["tigranet", *sys.argv[1:]])
