"""Measure what a saved network loses when images are rotated or shifted."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.choices import InferencePrecision
from tigranet.data import DataSet, UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation import Robustness, measure_robustness
from tigranet.evaluation.conformal import check_coverage
from tigranet.evaluation.set_coverage import SetCoverage, measure_set_coverage
from tigranet.workflows.data_notices import data_notices
from tigranet.workflows.model_and_data import load_model_and_data
from tigranet.workflows.predict import load_label_sets


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
    label_sets: SetCoverage | None = None
    """If a coverage was asked for: how often label sets contain the true label, and their size."""


def evaluate(
    model: str | Path,
    data: str | Path | DataSet,
    *,
    coverage: float | None = None,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    precision: InferencePrecision = "32",
    console: Console | None = None,
) -> Evaluation:
    """Measure a saved network on test images: as they are, rotated and shifted.

    The data are split as for the training of the network, and images that it was trained on are left out.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        data: The name of a data set, the path of the user's images, or a data set.
        coverage: Also measure label sets that should contain the true label with this probability, such as 0.95.
        seed: Seed of the random movements; by default that of the training.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.
        console: Where to show progress and notices.

    Returns:
        The accuracies, and the coverage and size of label sets if ``coverage`` is given.

    Raises:
        ValueError: If the network was trained on other data, if there are no test images, or if label sets are asked
            for and ``coverage`` is not between 0 and 1 or the model is not calibrated.
    """
    selected = select_device(device)
    if coverage is not None:
        check_coverage(coverage)
    loaded = load_model_and_data(model, data, seed=seed, data_dir=data_dir, console=console)
    loaded.data.require_test_images()
    sets = load_label_sets(model, loaded.network, coverage, console)
    if console:
        for notice in data_notices(loaded.data):
            console.print(notice, markup=False, soft_wrap=True)
    with console.status("measuring") if console else nullcontext():
        network = loaded.network.to(selected).compute_in(precision)
        robustness = measure_robustness(network, loaded.data, loaded.seed)
        label_sets = None if sets is None else measure_set_coverage(network, loaded.data, *sets, seed=loaded.seed)
    return Evaluation(
        robustness,
        loaded.seed,
        loaded.excluded_images,
        loaded.unreadable_files,
        loaded.data.untested_classes,
        label_sets,
    )
