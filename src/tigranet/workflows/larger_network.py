r"""A larger network, trained after a fast one where it is worth the time: the second step of the default on a CPU.

A fast network learns from some hundred images in a minute. If it is right on almost all validation images, nothing is
left to gain. Otherwise the network that is the default on a GPU is trained, too, if that takes at most the time that
the user allows. The fast network is saved before, and the user may stop the training of the larger one at any time.
"""

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn

from tigranet.data import DataSet, LabelledImages
from tigranet.devices import trains_on_cuda
from tigranet.evaluation import accuracy, moved_accuracy
from tigranet.freed_memory import keep_freed_memory
from tigranet.model import TIGraNet
from tigranet.model_folder import LARGER, LAST_CHECKPOINT
from tigranet.stop_request import is_end_requested, withdraw_stop
from tigranet.training import Hardware, Recipe
from tigranet.training.duration import describe_duration
from tigranet.training.process_state import seeded
from tigranet.workflows.choose_network import ChosenNetwork, default_network
from tigranet.workflows.describe_training import describe_network, print_lines
from tigranet.workflows.measured_training import count_parameters, train_module

EXTRA_MINUTES = 60.0
"""Largest expected duration of the training of a larger network, if the user gives none."""
GOOD_ACCURACY = 98.0
"""Accuracy in per cent from which on a larger network is not worth its time. With up to 1,000 images, the best network
makes about half of the mistakes of a fast one, or more (``results/presets.md``), so one point is left to gain."""
HINT_MARGIN = 1.3
"""Factor of the expected duration in the minutes that are suggested: it varies by about a tenth between two runs."""
WARM_UP_IMAGES = 2
"""Number of images of a first training step, which is not timed because kernels are compiled in it."""


@dataclass(frozen=True)
class LargerNetwork:
    """A larger network that was trained after a first one, or begun."""

    chosen: ChosenNetwork
    """The larger network."""
    first: str
    """The preset of the first network."""
    first_accuracy: float | None
    """Mean accuracy of the first network on validation images as they are and rotated, in per cent. None if it was not
    measured before the user stopped."""
    network: TIGraNet | None = None
    """The larger network, trained. None if its training did not finish."""
    accuracy: float | None = None
    """Its mean accuracy, like ``first_accuracy``."""
    seconds: float = 0.0
    """Duration of its training."""
    is_kept: bool = False
    """Whether it is the model, instead of the first network."""

    def __str__(self) -> str:
        """Return a sentence for the user."""
        larger, first = self.chosen.name, self.first
        if self.accuracy is None or self.first_accuracy is None:
            return f"the training of {larger} did not finish, {first} is kept"
        accuracies = f"{larger} {self.accuracy:.1f} %, {first} {self.first_accuracy:.1f} %"
        kept = larger if self.is_kept else first
        chance = (
            ", because the difference may be chance" if self.is_kept and self.accuracy < self.first_accuracy else ""
        )
        return f"validation images, as they are and rotated: {accuracies}; {kept} is kept{chance}"


def larger_network_record(larger: LargerNetwork | None) -> dict[str, Any]:
    """Return what the record of a training says about a larger network, as plain values.

    Args:
        larger: The larger network, if one was trained.

    Returns:
        The presets and accuracies of both networks, and whether the larger one is the model.
    """
    if larger is None:
        return {"is_larger": False, "larger_network": None}
    values = {
        "first": larger.first,
        "first_accuracy": larger.first_accuracy,
        "larger": larger.chosen.name,
        "larger_accuracy": larger.accuracy,
        "larger_seconds": round(larger.seconds, 1),
    }
    return {"is_larger": larger.is_kept, "larger_network": values}


def check_extra_minutes(extra_minutes: float) -> None:
    """Check the largest duration that the user gives.

    Args:
        extra_minutes: Minutes.

    Raises:
        ValueError: If they are negative or not finite.
    """
    if not 0 <= extra_minutes < math.inf:
        raise ValueError(f"extra_minutes must be at least 0 and finite, got {extra_minutes}")


def larger_network_for(
    first: ChosenNetwork, data: DataSet, hardware: Hardware, extra_minutes: float
) -> ChosenNetwork | None:
    """Return the network that may be trained after the default one.

    Args:
        first: The default network for the data and the hardware.
        data: The data set.
        hardware: What the user trains on.
        extra_minutes: Largest expected duration of its training in minutes.

    Returns:
        The default network of a GPU, if the training is on one CPU, if there are validation images to compare the two
        networks on, and if they are not the same. None if ``extra_minutes`` is 0, or if the user asks for a number of
        epochs or a patience, which are meant for one training.
    """
    is_limited = extra_minutes == 0 or bool({"epochs", "patience"} & first.options.recipe.keys())
    has_gpu = trains_on_cuda(hardware.accelerator) or torch.backends.mps.is_available()
    is_on_cpu = hardware.accelerator == "cpu" or (hardware.accelerator == "auto" and not has_gpu)
    is_on_one_cpu = is_on_cpu and hardware.devices == hardware.nodes == 1
    if is_limited or not is_on_one_cpu or not len(data.validation.labels):
        return None
    larger = default_network(data, accurate=True, options=first.options)
    return None if larger.architecture == first.architecture else larger


def is_begun(folder: Path) -> bool:
    """Return whether the training of a larger network can be continued.

    Args:
        folder: The folder of the checkpoints of the first network.

    Returns:
        Whether there is a checkpoint of the larger one.
    """
    return (folder / LARGER / LAST_CHECKPOINT).is_file()


def train_larger_network(
    larger: ChosenNetwork,
    first: ChosenNetwork,
    network: TIGraNet,
    data: DataSet,
    extra_minutes: float,
    console: Console | None = None,
    folder: Path | None = None,
    resume: bool = False,
    **fit_options: Any,
) -> LargerNetwork | None:
    """Train a larger network, if it is worth its time on this CPU.

    It is not if the first network makes few mistakes on validation images (:data:`GOOD_ACCURACY`), or if the training
    is expected to take longer than ``extra_minutes``. A training that was begun before is continued in any case.

    Ctrl-C stops the training, and keeps the first network. So does an error, because the user has a trained network.

    Args:
        larger: The larger network.
        first: The first network.
        network: The same, trained.
        data: The data set.
        extra_minutes: Largest expected duration in minutes.
        console: Where to show progress and the reasons.
        folder: The folder of the checkpoints of the first network.
        resume: Whether to continue a training of the larger network, if there is a checkpoint.
        **fit_options: Further arguments of :func:`tigranet.training.fit`.

    Returns:
        The larger network, and whether it is better. None if none was trained.

    Raises:
        KeyboardInterrupt: If the process is to end, as SIGTERM asks for.
        ValueError: If the checkpoint belongs to a different training.
    """
    from tigranet.training.lightning_module import Diverged  # imports Lightning, which a training needs anyway

    first_accuracy: float | None = None
    try:
        first_accuracy = mean_accuracy(network, data, first.recipe.seed)
        count = len(data.validation.labels)
        measured = f"{first.name}: {first_accuracy:.1f} % of {count} validation images, as they are and rotated"
        larger_network = larger.new_network(data)
        duration = ""
        if folder is None or not resume or not is_begun(folder):
            if first_accuracy >= GOOD_ACCURACY:
                hint = "--architecture accurate trains one alone"
                print_lines(
                    console, f"{measured}; a larger network would correct few mistakes, so none follows ({hint})"
                )
                return None
            expected = expected_seconds(larger_network, data.train, larger.recipe)
            duration = f", and takes {describe_duration(expected)}"
            if expected > 60 * extra_minutes:
                options = f"--extra-minutes {math.ceil(HINT_MARGIN * expected / 60)}"
                options += "" if folder is None else " --resume"
                print_lines(
                    console, f"{measured}; {larger.name} is usually more accurate{duration}: {options} trains it"
                )
                return None
        print_lines(
            console,
            f"{measured}. A larger network is usually more accurate{duration}. Ctrl-C keeps {first.name}.",
            describe_network(larger.name, count_parameters(larger_network), larger.describe_start()),
            larger.window.reason,
            f"recipe: {larger.recipe}",
        )
        if folder is not None:
            fit_options |= {"folder": folder / LARGER, "resume": resume}
        seconds = train_module(larger_network, data, larger.recipe, console, announce=False, **fit_options)
        larger_accuracy = mean_accuracy(larger_network, data, larger.recipe.seed)
    except KeyboardInterrupt as interrupt:
        hint = "" if folder is None else "; the same command with --resume continues with the larger one"
        if is_end_requested():
            interrupt.add_note(f"the network {first.name} is trained and saved{hint}")
            raise
        withdraw_stop()
        unfinished = LargerNetwork(larger, first.name, first_accuracy)
        print_lines(console, f"{unfinished}{hint}")
        return unfinished
    except (Diverged, MemoryError, OSError, RuntimeError) as error:
        unfinished = LargerNetwork(larger, first.name, first_accuracy)
        print_lines(console, f"{unfinished}: {error}")
        return unfinished
    is_kept = is_at_least_as_good(larger_accuracy, first_accuracy, count)
    result = LargerNetwork(larger, first.name, first_accuracy, larger_network, larger_accuracy, seconds, is_kept)
    print_lines(console, str(result))
    return result


def mean_accuracy(network: nn.Module, data: DataSet, seed: int) -> float:
    """Return the accuracy on the validation images, the mean of as they are and rotated at random.

    Args:
        network: The network.
        data: The data set.
        seed: Seed of the angles.

    Returns:
        The accuracy in per cent.
    """
    rotation = replace(data.test_motion, rotated=True, max_shift=0)
    rotated = moved_accuracy(network, data.validation, rotation, seed).mean
    return (accuracy(network, data.validation) + rotated) / 2


def is_at_least_as_good(larger: float, first: float, images: int) -> bool:
    """Return whether the larger network is to be kept: if it is not worse by more than the error of the measurement.

    In all measurements on many images it was at least as good, so a difference within the standard error of one
    accuracy is taken for chance.

    Args:
        larger: Accuracy of the larger network in per cent.
        first: That of the first one.
        images: The number of images that they were measured on.

    Returns:
        Whether the larger one is kept.

    Example:
        >>> is_at_least_as_good(80.0, 90.0, images=10), is_at_least_as_good(80.0, 90.0, images=100)
        (True, False)
    """
    share = larger / 100
    return larger >= first - 100 * (share * (1 - share) / images) ** 0.5


def expected_seconds(network: nn.Module, train: LabelledImages, recipe: Recipe) -> float:
    """Measure a training step on this machine, and return the expected duration of a training.

    Args:
        network: The network. A copy of it is trained.
        train: The training images.
        recipe: How it is to be trained.

    Returns:
        Seconds.
    """
    copy = deepcopy(network).train()
    images, labels = (tensor[: recipe.batch_size] for tensor in (train.images, train.labels))

    def step(count: int) -> float:
        start = perf_counter()
        F.cross_entropy(copy(images[:count]), labels[:count]).backward()
        return perf_counter() - start

    with seeded(recipe.seed), keep_freed_memory(True), torch.enable_grad():
        step(WARM_UP_IMAGES)
        return step(len(labels)) / len(labels) * len(train.labels) * recipe.epochs
