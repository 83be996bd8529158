"""The options of ``tigranet train`` that need more than a line, beside those of the recipe."""

from typing import Annotated, Any

import typer

from tigranet.choices import WindowOption
from tigranet.cli.options import HARDWARE_PANEL, MAX_SEED, USER_DATA_PANEL


def _user_data(help: str, **settings: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=USER_DATA_PANEL, **settings)


ArchitectureOption = Annotated[
    str | None,
    typer.Option(
        help="A preset (paper-small and paper are the paper's), layers such as 'SC[3,3]-S[10]-FC[50]', or fast or "
        "accurate, which choose a preset for the size and the number of the images.",
        show_default="accurate on a GPU; on a CPU fast, and then perhaps accurate: see --extra-minutes",
    ),
]
"""The network."""
WindowChoice = Annotated[
    WindowOption,
    typer.Option(
        help="disc fades out the corners of the images, which a rotation moves out of the frame; auto is disc for "
        "networks with LC layers if most training images fill their frame, and none otherwise."
    ),
]
"""What the network sees of an image."""
Margin = Annotated[
    int,
    typer.Option(
        min=0, help="Width in pixels of a margin of background around the images: the median of their border pixels."
    ),
]
"""Width of a margin around the images."""
Seed = Annotated[
    int,
    typer.Option(
        min=0, max=MAX_SEED, help="Seed of the split, the initial weights, the batches and the test rotations."
    ),
]
"""The seed of everything random."""
Size = Annotated[
    int | None,
    _user_data(
        "Side length in pixels.",
        min=2,
        max=2048,
        show_default="that of the images, at most 224, and less for many images",
    ),
]
"""Side length of a user's images."""
Color = Annotated[
    bool | None,
    typer.Option(
        "--color/--grey",
        help="Keep all channels, or convert to grey. Grey files among colour files get three equal channels.",
        show_default="the colours are kept if there are any",
        rich_help_panel=USER_DATA_PANEL,
    ),
]
"""Whether a user's images keep their channels."""
Group = Annotated[
    str | None,
    _user_data(
        "Keep images of one group, such as the views of one object, in the same part: a column of the CSV file, an "
        "array of the .npz file, or a regular expression for the path below the folder."
    ),
]
"""Which of a user's images stay together."""
TrainImages = Annotated[int | None, _user_data("Training images, 1 or more per class; the rest are tested.")]
"""Number of training images of a user's data."""
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Fit a linear classifier to invariant features in seconds instead of training: a first model.",
    ),
]
"""Whether to fit a linear classifier only."""
FoldsOption = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        help="First measure the accuracy by cross-validation: train this number of networks, so that every image is "
        "tested once.",
        show_default="no cross-validation",
    ),
]
"""Number of folds of a cross-validation."""
ExtraMinutes = Annotated[
    float,
    typer.Option(
        "--extra-minutes",
        min=0,
        help="On a CPU: train the accurate network after the fast one if that is expected to take at most this many "
        "minutes, unless the fast one is right on almost all validation images. Ctrl-C then keeps the fast one. 0, "
        "--epochs, --patience and --folds train only the fast one.",
    ),
]
"""Largest duration of a larger network that is trained after the first one."""
Init = Annotated[
    str,
    typer.Option(
        help="Start from this network: the folder of a saved model, or the name of a shipped one. Classes of the same "
        "name keep what they have learned. 'none' starts from random weights, 'auto' from a shipped network if the "
        "default architecture has one.",
    ),
]
"""The network to start from."""
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a model that is already in the output folder.")]
"""Whether a model may be replaced."""
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted training.", rich_help_panel=HARDWARE_PANEL),
]
"""Whether to continue an interrupted training."""
