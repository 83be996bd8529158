"""Compare how far networks are from rotation invariance, angle by angle."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tigranet.architecture import Architecture
from tigranet.choose_architecture import default_size_limit
from tigranet.data import DataSet, UnreadableFile
from tigranet.devices import select_accelerator, select_device, trains_on_cuda
from tigranet.evaluation.curves import Invariance, invariance
from tigranet.evaluation.row_writer import open_row_writer
from tigranet.model import TIGraNet
from tigranet.workflows.baselines import train_paper_baselines
from tigranet.workflows.load_data import LoadedData, load_data
from tigranet.workflows.networks import is_architecture, load_network
from tigranet.workflows.output_folder import check_apart_from_data, check_output_folder, require_matplotlib
from tigranet.workflows.saved_run import SavedRun, load_data_of_run
from tigranet.workflows.training_images import MeasuredModel, exclude_training_images

TABLE_FILE = "angles.csv"
"""Name of the table in the output folder."""


@dataclass(frozen=True)
class Comparison:
    """The change of the logits and the accuracy of several networks at each angle."""

    data: str
    """Name of the data set."""
    images: int
    """Number of test images that were rotated."""
    networks: Mapping[str, Invariance]
    """By name of the network. Accuracy is measured only for trained networks with the classes of the data."""
    files: tuple[Path, ...] = ()
    """The pictures and the table that were written."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""
    excluded_images: int = 0
    """Test images that were left out because one of the networks was trained on them."""


def compare(
    data: str | Path | DataSet,
    models: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    baselines: bool = False,
    epochs: int | None = None,
    images: int = 200,
    degrees: int = 15,
    seed: int | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    console: Console | None = None,
) -> Comparison:
    """Rotate test images, and measure how much the logits of several networks change and how often they are right.

    The images are split as for the training of the first network. Images that any of the networks was trained on are
    left out, so that all networks are measured on the same images, which are new to each of them.

    Args:
        data: The name of a data set, the path of the user's images, or a data set.
        models: Saved networks, or presets or layers for networks that are not trained.
        output: The folder to write a picture and a table to; without one nothing is written.
        baselines: Whether to train the paper's ConvNet and STN, and to compare with them too.
        epochs: Number of epochs of the two baselines instead of the default.
        images: Number of test images, at most.
        degrees: Step from one angle to the next.
        seed: Seed of the baselines; by default that of the training of the first network.
        data_dir: Folder of the named data sets.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        console: Where to show progress and notices.

    Returns:
        The measured curves, and the files that were written.

    Raises:
        ImportError: If a picture is to be drawn and matplotlib is missing.
        OSError: If ``output`` cannot be written.
        ValueError: If ``models`` is empty, if networks read different numbers of channels, or if there are no test
            images, or none that the networks were not trained on.
    """
    if not models:
        raise ValueError("expected at least one network to compare, got none")
    if output is not None:
        require_matplotlib()
        check_output_folder(Path(output), "picture")
        check_apart_from_data(Path(output), data, "picture")
    selected = select_device(device)
    if baselines:
        select_accelerator(device)  # refuses, before any work, a device that cannot train
    loaded, split = _load(data, models[0], seed, data_dir, console)
    seed = split.seed if seed is None else seed
    names = _short_names(models)
    saved = {name: load_network(model, loaded.data) for name, model in zip(names, models, strict=True)}
    measured_models = {
        name: MeasuredModel(str(model), saved[name], SavedRun.read(model))
        for name, model in zip(names, models, strict=True)
        if not is_architecture(model)
    }
    loaded.data.require_test_images()
    data_set = exclude_training_images(
        loaded.data, data, list(measured_models.values()), split, data_dir=data_dir, console=console
    )
    others = {}
    if baselines:
        others = train_paper_baselines(saved[names[0]], data_set, seed, epochs, console, device=device)
    test = data_set.test.take(list(range(min(images, len(data_set.test.labels)))))
    angles = sorted({*map(float, range(0, 360, degrees)), 90.0, 180.0, 270.0, 360.0})
    measured: dict[str, Invariance] = {}
    for name, network in (saved | others).items():
        knows_classes = name not in saved or (
            name in measured_models and saved[name].class_names == tuple(data_set.class_names)
        )
        labels = test.labels if knows_classes else None
        with console.status(f"rotating images for {name}") if console else nullcontext():
            measured[name] = invariance(network.to(selected), test.images, labels, data_set.test_motion.padding, angles)
    files = () if output is None else _write(Path(output), measured, len(data_set.class_names))
    excluded = len(loaded.data.test.labels) - len(data_set.test.labels)
    return Comparison(data_set.name, len(test.labels), measured, files, loaded.unreadable_files, excluded)


def _load(
    data: str | Path | DataSet, first: str | Path, seed: int | None, data_dir: Path | None, console: Console | None
) -> tuple[LoadedData, SavedRun]:
    """Load the data as for the training of the first network, and the run that they were split for."""
    if is_architecture(first):
        run = SavedRun(seed=seed or 0)
        max_size = default_size_limit(Architecture.parse(str(first)), trains_on_cuda())
        return load_data(data, seed=run.seed, max_size=max_size, data_dir=data_dir, console=console), run
    run = SavedRun.read(first)
    network = TIGraNet.from_pretrained(first)
    return load_data_of_run(network, run, data, data_dir=data_dir, console=console), run


def _short_names(models: Sequence[str | Path]) -> list[str]:
    """Return the last part of each path, or the whole paths if two of them end alike.

    >>> _short_names(["a/model", "paper"]), _short_names(["a/model", "b/model"])
    (['model', 'paper'], ['a/model', 'b/model'])
    """
    names = [Path(model).name for model in models]
    return names if len(set(names)) == len(set(models)) else [str(model) for model in models]


def _write(folder: Path, measured: Mapping[str, Invariance], classes: int) -> tuple[Path, ...]:
    """Write the picture and the table."""
    from tigranet.figures.angles import save_invariance

    pictures = save_invariance(folder, measured, 100 / classes)
    with open_row_writer(["network", "degrees", "change", "accuracy"], folder / TABLE_FILE) as write:
        for name, curve in measured.items():
            accuracies = curve.accuracy or [None] * len(curve.at)
            for angle, change, accuracy in zip(curve.at, curve.change, accuracies, strict=True):
                write({"network": name, "degrees": angle, "change": change, "accuracy": accuracy})
    return (*pictures, folder / TABLE_FILE)
