"""Load a named data set, or the user's own images."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rich.console import Console

from tigranet.data import REGISTRY, DataSet, LabelledImages, UnreadableFile, is_user_data, load, load_user_data
from tigranet.data.duplicates import DuplicateCounts
from tigranet.data.leakage import hash_images
from tigranet.data.letterbox import MAX_DEFAULT_SIZE, SizeLimit
from tigranet.data.shards.stored_images import StoredImages


@dataclass(frozen=True)
class LoadedData:
    """A data set, and the files that are not in it."""

    data: DataSet
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""

    @property
    def duplicates(self) -> DuplicateCounts | None:
        """Images that occur more than once; None if this was not examined, as for named data sets."""
        return self.data.duplicates


def is_named_data_set(data: str | Path | DataSet) -> bool:
    """Return whether ``data`` is the name of a data set, rather than a path or a data set in memory.

    Args:
        data: What a workflow received as data.

    Returns:
        Whether it is a name of :data:`tigranet.data.REGISTRY`.

    Example:
        >>> is_named_data_set("mnist-012"), is_named_data_set("./mnist-012")
        (True, False)
    """
    return isinstance(data, str) and data in REGISTRY


def load_data(
    data: str | Path | DataSet,
    *,
    seed: int = 0,
    size: int | None = None,
    max_size: SizeLimit = MAX_DEFAULT_SIZE,
    color: bool | None = False,
    channels: int | None = None,
    group: str | None = None,
    train_images: int | None = None,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> LoadedData:
    """Load a data set by name, or images from a folder, a CSV file, an .npz file or shards.

    Args:
        data: The name of a data set, the path of the user's images, or a data set, which is returned as it is: test
            images that are also training images are counted on the console, and stay.
        seed: Seed of the split into training, validation and test images.
        size: Side length of the user's images in pixels; by default their own, at most ``max_size``.
        max_size: Largest side length that is chosen if ``size`` is None.
        color: Whether the user's images keep all channels. Grey images among images of three channels are repeated in
            three channels. None keeps them if the images have colours.
        channels: Number of channels that a network reads. For 3, grey images of the user are repeated in three channels
            even if none has colours.
        group: Which of the user's images stay together in one part, see :func:`tigranet.data.load_user_data`.
        train_images: Number of the user's images to train on; all others are test images.
        data_dir: Folder of the named data sets, see :func:`tigranet.data.data_folder`.
        console: Where to show progress.

    Returns:
        The data set, and the files that could not be read. The options for the user's images have no effect on a named
        data set.
    """
    if isinstance(data, DataSet):
        if console:
            _print_common_images(data, console)
        return LoadedData(data)
    if is_named_data_set(data) or not is_user_data(Path(data)):
        if console and Path(data).is_dir():
            console.print(f"'{data}' is the name of a data set; for the folder, write './{data}'")
        return LoadedData(load(str(data), seed, data_dir))
    with console.status("reading images") if console else nullcontext() as status:
        counter = count(1)

        def show_progress() -> None:
            if status:
                status.update(f"reading images: {next(counter)}")

        data_set, unreadable_files = load_user_data(
            Path(data), seed, size, color, group, train_images, show_progress, max_size
        )
    if channels is not None:
        train, validation, test = (
            repeat_grey(part, channels) for part in (data_set.train, data_set.validation, data_set.test)
        )
        data_set = replace(data_set, train=train, validation=validation, test=test)
    if console and unreadable_files:
        console.print(f"unreadable files, which are not used: {len(unreadable_files)}")
    if console and data_set.duplicates:
        for sentence in data_set.duplicates.describe():
            console.print(sentence, markup=False)
    return LoadedData(data_set, tuple(unreadable_files))


def repeat_grey(part: LabelledImages, channels: int) -> LabelledImages:
    """Repeat grey images in three channels for a network that reads three.

    Args:
        part: Images.
        channels: Number of channels that the network reads.

    Returns:
        The images in three channels, without a copy, if they are grey and three are needed; otherwise ``part`` itself.
    """
    if channels != 3 or part.images.shape[1] != 1:
        return part
    if isinstance(part.images, StoredImages):
        return part._replace(images=part.images.in_three_channels())
    return part._replace(images=part.images.expand(-1, 3, -1, -1))


def _print_common_images(data: DataSet, console: Console) -> None:
    training_hashes = set(hash_images(data.train.images))
    common = sum(content in training_hashes for content in hash_images(data.test.images))
    if common:
        console.print(
            f"{common} of {len(data.test.labels)} test images of {data.name} are also training images, and are used as "
            "they are, because the data set was split by the caller",
            markup=False,
        )
