"""Train a network on a data set and measure it."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import torch
from rich.console import Console
from torch import Tensor, nn

from tigranet.architecture import Architecture
from tigranet.data.augment.rigid import Isometry
from tigranet.data.dataset import DataSet
from tigranet.evaluation.accuracy import Accuracy, accuracy, moved_accuracy
from tigranet.evaluation.provenance import machine, versions
from tigranet.evaluation.robustness import NEAREST, Robustness, robustness
from tigranet.graphs.grid import Boundary
from tigranet.model import TIGraNet
from tigranet.training import Recipe, fit


@runtime_checkable
class FitsItself(Protocol):
    """A network that is not trained by gradients."""

    def fit(self, images: Tensor, labels: Tensor) -> object: ...


@dataclass(frozen=True)
class Measured:
    """Accuracies in per cent, and what they were measured on."""

    data: str
    architecture: str
    boundary: str
    parameters: int
    recipe: Recipe
    seconds: float
    train: float
    validation: float | None
    test: float
    how: str
    """What was done to the test images of ``moved``, with bilinear interpolation, and ``nearest``, without."""
    moved: Accuracy
    nearest: Accuracy
    robustness: Robustness
    """Turned and shifted, whatever the test of the data set is."""

    @property
    def drop(self) -> float:
        """How many points are lost when the test images are moved."""
        return self.test - self.moved.mean

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what they were measured by."""
        accuracies = {
            "moved": self.moved._asdict(),
            "nearest": self.nearest._asdict(),
            "drop": self.drop,
            "robustness": self.robustness.to_json()["moved"],
        }
        return asdict(self) | accuracies | {"versions": versions(), "machine": machine()}


def recipe_for(data: DataSet, architecture: Architecture, **chosen: Any) -> Recipe:
    """The usual recipe for so many images and a network of that size, but for what is ``chosen``."""
    with torch.device("meta"):
        network = TIGraNet(architecture, len(data.class_names), data.train.images.shape[1])
    return Recipe.for_network(network, len(data.train.labels), **chosen)


def run(
    data: DataSet,
    architecture: Architecture,
    recipe: Recipe,
    boundary: Boundary = "free",
    console: Console | None = None,
    **how: Any,
) -> tuple[TIGraNet, Measured]:
    """A network of ``architecture`` trained on ``data`` by ``recipe``, and its accuracies. ``how`` is for ``fit``."""
    torch.manual_seed(recipe.seed)
    height, width = data.train.images.shape[2:]
    module = TIGraNet(
        architecture,
        len(data.class_names),
        data.train.images.shape[1],
        boundary=boundary,
        class_names=data.class_names,
        image_size=height if height == width else None,
    )
    measured = train_and_measure(module, str(architecture), data, recipe, console, boundary=boundary, **how)
    return module.cpu(), measured


def train_and_measure(
    module: nn.Module,
    architecture: str,
    data: DataSet,
    recipe: Recipe,
    console: Console | None = None,
    *,
    boundary: str = "-",
    **fitting: Any,
) -> Measured:
    """Train any network on ``data`` by ``recipe``, and measure it. One with a ``fit`` of its own is fitted by it."""
    start = perf_counter()
    validation = data.validation if len(data.validation.labels) else None
    if isinstance(module, FitsItself):
        with console.status("fitting") if console else nullcontext():
            module.to("cuda" if torch.cuda.is_available() else "cpu")
            module.fit(data.train.images, data.train.labels)
    else:
        fit(module, data.train, validation, recipe, console, **fitting)
    seconds = perf_counter() - start
    with console.status("measuring") if console else nullcontext():
        found = robustness(module, data, recipe.seed)
        how = str(data.test_motion)
        known = found.moved | {str(Isometry()): Accuracy(found.upright, 0.0, 1)}
        moved = known.get(how) or moved_accuracy(module, data.test, data.test_motion, recipe.seed)
        if not data.test_motion.rotated:
            nearest = moved  # shifts are by whole pixels
        elif data.test_motion.max_shift:
            nearest = moved_accuracy(module, data.test, data.test_motion, recipe.seed, "nearest")
        else:
            nearest = found.moved[NEAREST]
        return Measured(
            data=data.name,
            architecture=architecture,
            boundary=boundary,
            parameters=_parameters(module),
            recipe=recipe,
            seconds=round(seconds, 1),
            train=accuracy(module, data.train),
            validation=None if validation is None else accuracy(module, validation),
            test=found.upright,
            how=how,
            moved=moved,
            nearest=nearest,
            robustness=found,
        )


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
