"""What a training understood: the images, the parts, the network and the choices made for the user, one line each."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tigranet.data import DataSet
from tigranet.data.image_errors import UnreadableImageError
from tigranet.data.image_io import read_image_size
from tigranet.data.shards.stored_images import StoredImages
from tigranet.fine_tuning import DEFAULT_STARTS
from tigranet.workflows.load_data import is_named_data_set

EXAMINED_FILES = 50
"""Number of files whose original sizes are read."""
LEARNED_FEATURES = DEFAULT_STARTS["pyramid-large"]
"""The network of the package whose features are usually better than those of random weights."""


def describe_data(data: str | Path | DataSet, data_set: DataSet) -> list[str]:
    """Describe the images of a training: how many there are, of which classes, and how they were scaled.

    Args:
        data: The data as a workflow received it.
        data_set: The data set that was loaded from it.

    Returns:
        Two lines.
    """
    counts = [len(part.labels) for part in (data_set.train, data_set.validation, data_set.test)]
    orientation = f"{data_set.orientation} " if data_set.orientation else ""
    never_rotated = ", never rotated" if data_set.orientation == "upright" else ""
    others = f"{counts[1]} validation and {counts[2]} test images"
    classes = f"{len(data_set.class_names)} classes"
    first = f"{data_set.name}: {counts[0]} {orientation}training images{never_rotated}, {others} of {classes}"
    channels, height, width = data_set.train.images.shape[1:]
    kind = "grey" if channels == 1 else "colour" if channels == 3 else f"{channels} channels"
    second = f"images: {width}x{height} pixels, {kind}"
    if isinstance(data_set.train.images, StoredImages):
        second += ", read from shards"
    elif not isinstance(data, DataSet) and not is_named_data_set(data):
        second += _describe_scaling(data_set.test_files or (), max(height, width))
        second += "; --size sets another size" + (", --grey leaves out the colours" if channels == 3 else "")
    return [first, second]


def _describe_scaling(files: Sequence[str], side: int) -> str:
    """Describe how some of the files were scaled; nothing if their sizes are not known."""
    sides = []
    for file in files[:: max(1, len(files) // EXAMINED_FILES)][:EXAMINED_FILES]:
        try:
            sides.append(max(read_image_size(Path(file))))
        except (UnreadableImageError, OSError):  # the pixels came from the cache
            continue
    if not sides:
        return ""
    if min(sides) == max(sides) == side:
        return ", not scaled"
    original = f"{min(sides)}" if min(sides) == max(sides) else f"{min(sides)} to {max(sides)}"
    return f", scaled so that the longer side of {original} pixels becomes {side}"


def describe_network(name: str, parameters: int, reason: str) -> str:
    """Describe the network that is trained.

    Args:
        name: Its preset or its layers.
        parameters: Number of parameters.
        reason: Why this network was chosen, and how to choose another one.

    Returns:
        One line.
    """
    return f"network: {name}, {parameters:,} parameters, {reason}"


def describe_choice(
    images: int,
    choice: str | None,
    gpu: bool,
    start: str | None,
    quick: bool = False,
    faster: str = "",
    is_fast: bool = False,
    may_train_larger: bool = False,
) -> str:
    """Explain the choice of the network.

    Args:
        images: Number of training images.
        choice: ``default`` if the user named no architecture, ``fast`` or ``accurate`` if the user asked for that
            default, or None for named layers.
        gpu: Whether it is trained on a GPU.
        start: The network that the training starts from, if any.
        quick: Whether only the last layer is fitted.
        faster: A faster preset than the default on a CPU, if there is one.
        is_fast: Whether the accurate network for these images is another one.
        may_train_larger: Whether a larger network may be trained after this one.

    Returns:
        The reason, for the header of a training.

    Example:
        >>> describe_choice(300, None, gpu=False, start="model/")
        "starts from 'model/'"
        >>> describe_choice(300, "fast", gpu=True, start=None)
        'the fast network for 300 training images of this size'
    """
    origin = "" if start is None else f"starts from '{start}'" + (", whose features are not trained" if quick else "")
    if choice is None:
        return origin or "as requested"
    if quick:
        return (
            "with random weights, of which only the last layer is fitted; "
            f"--init {LEARNED_FEATURES} takes features that were learned from photographs; "
            "without --quick a network is trained"
        )
    hints = []
    if choice == "default":
        reason = f"the default for {images} training images of this size on a {'GPU' if gpu else 'CPU'}"
        if may_train_larger:
            hints.append("a larger network follows if it is worth the time (--extra-minutes)")
        elif is_fast:
            hints.append("--architecture accurate is more accurate, and much slower on a CPU")
        if faster and not gpu:
            hints.append(f"--architecture {faster} is faster")
        hints = hints or ["--architecture names another one"]
    else:
        reason = f"the {choice} network for {images} training images of this size"
    return "; ".join([reason, *([origin] if origin else []), *([", ".join(hints)] if hints else [])])


def print_lines(console: Console | None, *lines: str) -> None:
    """Print lines as they are, without a break at the width of the console.

    Args:
        console: Where to print. None prints nothing.
        *lines: The lines.
    """
    if console:
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)
