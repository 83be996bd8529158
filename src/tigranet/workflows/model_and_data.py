"""Load a saved network together with data to measure it on, none of which it was trained on."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.data import DataSet, UnreadableFile
from tigranet.model import TIGraNet
from tigranet.workflows.saved_run import SavedRun, load_data_of_run
from tigranet.workflows.training_images import MeasuredModel, exclude_training_images


@dataclass(frozen=True)
class ModelAndData:
    """A saved network, and a data set in the format that it reads, split as for its training."""

    network: TIGraNet
    data: DataSet
    run: SavedRun
    """How the network was trained."""
    seed: int
    """Seed of the random movements of the test images."""
    excluded_images: int = 0
    """Test images that were removed because the network was trained on them."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""


def load_model_and_data(
    model: str | Path,
    data: str | Path | DataSet,
    *,
    seed: int | None = None,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> ModelAndData:
    """Load a saved network, and data split as for its training.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        data: A data set, the name of one, or the path of the user's images.
        seed: Seed of the random movements; by default that of the training.
        data_dir: Folder of the named data sets.
        console: Where to show progress and notices.

    Returns:
        The network, in evaluation mode on the CPU, and the data without images that the network was trained on.

    Raises:
        ValueError: If the network was trained on all test images.
    """
    network = TIGraNet.from_pretrained(model)
    run = SavedRun.read(model)
    loaded = load_data_of_run(network, run, data, data_dir=data_dir, console=console)
    models = [MeasuredModel(str(model), network, run)]
    data_set = exclude_training_images(loaded.data, data, models, run, data_dir=data_dir, console=console)
    return ModelAndData(
        network,
        data_set,
        run,
        seed=run.seed if seed is None else seed,
        excluded_images=len(loaded.data.test.labels) - len(data_set.test.labels),
        unreadable_files=loaded.unreadable_files,
    )
