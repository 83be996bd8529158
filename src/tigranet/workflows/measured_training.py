"""Train any network on a data set, and measure its accuracy on images as they are and moved."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from torch import Tensor, nn

from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.devices import select_accelerator, select_device
from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy
from tigranet.evaluation.provenance import machine, versions
from tigranet.evaluation.robustness import NEAREST, Robustness, robustness
from tigranet.model import TIGraNet
from tigranet.training import Hardware, Recipe
from tigranet.workflows.trained_network import train_once


@runtime_checkable
class FitsItself(Protocol):
    """A network that is not trained by gradients, and has a ``fit`` method instead."""

    def fit(self, images: Tensor, labels: Tensor) -> object:
        """Fit the network.

        Args:
            images: The training images.
            labels: Their classes.

        Returns:
            Anything; the value is not used.
        """


@dataclass(frozen=True)
class TrainingResult:
    """Accuracies of a trained network in per cent, and the training that led to them.

    All that is measured on test images is None if there are none.
    """

    data: str
    """Name of the data set."""
    architecture: str
    """The network, in the paper's notation or by preset."""
    boundary: str
    """The boundary of the grid; '-' for a network that has none."""
    parameters: int
    """Number of parameters."""
    recipe: Recipe
    """How the network was trained."""
    seconds: float
    """Duration of the training."""
    train: float
    """Accuracy on the training images."""
    validation: float | None
    """Accuracy on the validation images, if there are any."""
    test: float | None
    """Accuracy on the test images as they are."""
    how: str
    """The movement of the test images of ``moved`` and ``nearest``."""
    moved: Accuracy | None
    """Accuracy on moved test images, rotated with bilinear interpolation."""
    nearest: Accuracy | None
    """Accuracy on moved test images, rotated without interpolation."""
    robustness: Robustness | None
    """Accuracy on rotated and on shifted test images, whatever the test of the data set is."""

    @property
    def drop(self) -> float | None:
        """Percentage points that are lost when the test images are moved; None without test images."""
        return None if self.test is None or self.moved is None else self.test - self.moved.mean

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with the versions of the software and the machine.

        Returns:
            The fields by name, the drop, and the confidence interval of the accuracy on test images. What is not
            measured is None, which is null in JSON.
        """
        interval = None if self.robustness is None else self.robustness.interval().to_json()
        accuracies = {
            "test_interval": interval,
            "moved": self.moved and self.moved._asdict(),
            "nearest": self.nearest and self.nearest._asdict(),
            "drop": self.drop,
            "robustness": self.robustness and self.robustness.to_json()["moved"],
        }
        return asdict(self) | accuracies | {"versions": versions(), "machine": machine()}


def count_parameters(module: nn.Module) -> int:
    """Return the number of parameters of a network.

    Args:
        module: The network.

    Returns:
        The number of its parameters.
    """
    return sum(parameter.numel() for parameter in module.parameters())


def train_module(
    module: nn.Module,
    data: DataSet,
    recipe: Recipe,
    console: Console | None = None,
    *,
    device: str = "auto",
    **fit_options: Any,
) -> float:
    """Train any network in place, and leave it on the device that it was trained on.

    Args:
        module: The network. One that has a ``fit`` method is fitted by that method.
        data: The data set.
        recipe: How to train.
        console: Where to show progress.
        device: The device to train on, see :func:`tigranet.devices.select_device`; not used if ``hardware`` is given.
        **fit_options: Further arguments of :func:`tigranet.training.fit`.

    Returns:
        The duration in seconds.
    """
    if isinstance(module, FitsItself):
        start = perf_counter()
        with console.status("fitting") if console else nullcontext():
            module.to(select_device(device))
            module.fit(data.train.images, data.train.labels)
    else:
        from tigranet.training import fit  # imports Lightning, whose seconds are no part of the training

        start = perf_counter()
        fit_options.setdefault("hardware", Hardware(select_accelerator(device)))
        fit(
            module, data.train, data.validation if len(data.validation.labels) else None, recipe, console, **fit_options
        )
    return perf_counter() - start


def measure(
    module: nn.Module,
    architecture: str,
    data: DataSet,
    recipe: Recipe,
    seconds: float,
    console: Console | None = None,
    *,
    boundary: str = "-",
) -> TrainingResult:
    """Measure a trained network on all parts of a data set.

    Args:
        module: The trained network; it is measured on the device that it is on.
        architecture: Its notation or preset, for the result.
        data: The data set.
        recipe: The recipe that the network was trained with. Its seed draws the movements.
        seconds: Duration of the training.
        console: Where to show progress.
        boundary: The boundary of the grid, for the result.

    Returns:
        The accuracies.
    """
    with console.status("measuring") if console else nullcontext():
        measured = robustness(module, data, recipe.seed) if len(data.test.labels) else None
        moved, nearest = (None, None) if measured is None else _moved_test(module, data, measured, recipe.seed)
        return TrainingResult(
            data=data.name,
            architecture=architecture,
            boundary=boundary,
            parameters=count_parameters(module),
            recipe=recipe,
            seconds=round(seconds, 1),
            train=accuracy(module, data.train),
            validation=accuracy(module, data.validation) if len(data.validation.labels) else None,
            test=None if measured is None else measured.upright,
            how=str(data.test_motion),
            moved=moved,
            nearest=nearest,
            robustness=measured,
        )


def _moved_test(module: nn.Module, data: DataSet, measured: Robustness, seed: int) -> tuple[Accuracy, Accuracy]:
    """Return the accuracies for the movement of the data set, with and without interpolation."""
    motion = data.test_motion
    by_movement = measured.moved | {str(Isometry()): Accuracy(measured.upright, 0.0, 1)}
    moved = by_movement.get(str(motion)) or moved_accuracy(module, data.test, motion, seed)
    if not motion.rotated:
        return moved, moved  # images are shifted by whole pixels, so nothing is interpolated
    if motion.max_shift:
        return moved, moved_accuracy(module, data.test, motion, seed, "nearest")
    return moved, measured.moved[NEAREST]


def train_and_measure(
    module: nn.Module,
    architecture: str,
    data: DataSet,
    recipe: Recipe,
    console: Console | None = None,
    *,
    boundary: str = "-",
    device: str = "auto",
    save_to: Path | None = None,
    **fit_options: Any,
) -> TrainingResult:
    """Train any network in place and measure it.

    Args:
        module: The network. One that has a ``fit`` method is fitted by that method.
        architecture: Its notation or preset, for the result.
        data: The data set.
        recipe: How to train.
        console: Where to show progress.
        boundary: The boundary of the grid, for the result.
        device: The device to train on, see :func:`tigranet.devices.select_device`.
        save_to: Folder to save a trained TIGraNet to, before it is measured. If the folder holds this network, trained
            with this recipe, it is measured and not trained again. Other networks are not saved.
        **fit_options: Further arguments of :func:`tigranet.training.fit`.

    Returns:
        The accuracies.
    """

    def train() -> float:
        return train_module(module, data, recipe, console, device=device, **fit_options)

    if save_to is not None and isinstance(module, TIGraNet):
        seconds = train_once(save_to, module, recipe, train)
        module.to(select_device(device))
    else:
        seconds = train()
    return measure(module, architecture, data, recipe, seconds, console, boundary=boundary)
