"""All labelled images of a user, whatever part they are in, with their paths and groups."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.console import Console

from tigranet.data import DataSet, LabelledImages, UnreadableFile, is_user_data
from tigranet.data.user_data import read_user_images
from tigranet.model import TIGraNet
from tigranet.workflows.load_data import is_named_data_set, load_data, repeat_grey
from tigranet.workflows.saved_run import TRAINING_FILE, SavedRun


@dataclass(frozen=True)
class LabelledData:
    """All labelled images of a user, or the training images of a data set."""

    class_names: tuple[str, ...]
    """Name of each class."""
    images: LabelledImages
    """The images with their labels."""
    paths: tuple[Path, ...] | None = None
    """Path of each image, if each is in a file of its own."""
    groups: tuple[str, ...] | None = None
    """Group of each image."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""

    def name(self, position: int) -> str:
        """Return what to call an image.

        Args:
            position: Position of the image.

        Returns:
            Its path, or its number.
        """
        return f"image {position:09d}" if self.paths is None else str(self.paths[position])


def load_labelled_data(
    network: TIGraNet,
    run: SavedRun,
    data: str | Path | DataSet,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> LabelledData:
    """Load labelled images at the size that a network reads: all images of a user, training images of a data set.

    Args:
        network: The network.
        run: How it was trained.
        data: A data set, the name of one, or the path of the user's images.
        data_dir: Folder of the named data sets.
        console: Where to show progress.

    Returns:
        The images.

    Raises:
        FileNotFoundError: If the data do not exist.
        ValueError: If the images cannot be read.
    """
    if isinstance(data, DataSet) or is_named_data_set(data) or not is_user_data(Path(data)):
        data_set = load_data(data, seed=run.seed, data_dir=data_dir).data
        return LabelledData(data_set.class_names, data_set.train)
    counter = count(1)
    with console.status("reading images") if console else nullcontext() as status:

        def show_progress() -> None:
            if status:
                status.update(f"reading images: {next(counter)}")

        try:
            user = read_user_images(Path(data), network.image_size, network.in_maps > 1, run.group, show_progress)
        except ValueError as error:
            if run.group is None:
                raise
            raise ValueError(f"{error} (the group is that of the model's {TRAINING_FILE})") from None
    images = repeat_grey(user.images, network.in_maps)
    return LabelledData(user.class_names, images, user.paths, user.groups, user.unreadable)
