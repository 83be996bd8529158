"""Measure what a saved network loses when images are rotated or shifted."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.data import DataSet, UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation import Robustness, measure_robustness
from tigranet.workflows.data_notices import data_notices
from tigranet.workflows.model_and_data import load_model_and_data


@dataclass(frozen=True)
class Evaluation:
    """Accuracies of a saved network on test images, as they are and moved."""

    robustness: Robustness
    """The accuracies in per cent."""
    seed: int
    """Seed of the random movements."""
    excluded_images: int = 0
    """Test images that were left out because the network was trained on them."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""
    untested_classes: tuple[str, ...] = ()
    """Names of the classes that have no test images, about which the accuracies say nothing."""


def evaluate(
    model: str | Path,
    data: str | Path | DataSet,
    *,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> Evaluation:
    """Measure a saved network on test images: as they are, rotated and shifted.

    The data are split as for the training of the network, and images that it was trained on are left out.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        data: The name of a data set, the path of the user's images, or a data set.
        seed: Seed of the random movements; by default that of the training.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        console: Where to show progress and notices.

    Returns:
        The accuracies.

    Raises:
        ValueError: If the network was trained on other data, or if there are no test images.
    """
    selected = select_device(device)
    loaded = load_model_and_data(model, data, seed=seed, data_dir=data_dir, console=console)
    loaded.data.require_test_images()
    if console:
        for notice in data_notices(loaded.data):
            console.print(notice, markup=False, soft_wrap=True)
    with console.status("measuring") if console else nullcontext():
        robustness = measure_robustness(loaded.network.to(selected), loaded.data, loaded.seed)
    return Evaluation(
        robustness, loaded.seed, loaded.excluded_images, loaded.unreadable_files, loaded.data.untested_classes
    )
