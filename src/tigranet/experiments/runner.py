"""Train a network on a data set and measure it."""

import platform
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import torch
from rich.console import Console

from tigranet import __version__
from tigranet.architecture import Architecture
from tigranet.data.named import DataSet
from tigranet.evaluation.accuracy import Accuracy, accuracy, rotated_accuracy
from tigranet.graphs.grid import Boundary
from tigranet.model import TIGraNet
from tigranet.training import Recipe, fit


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
    validation: float
    test: float
    rotated: Accuracy

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what they were measured by."""
        versions = {"tigranet": __version__, "torch": torch.__version__, "python": platform.python_version()}
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
        machine = {"cpu": platform.machine(), "threads": torch.get_num_threads(), "gpu": gpu}
        return asdict(self) | {"rotated": self.rotated._asdict(), "versions": versions, "machine": machine}


def run(
    data: DataSet, architecture: str, recipe: Recipe, boundary: Boundary = "free", console: Console | None = None
) -> tuple[TIGraNet, Measured]:
    """A network of ``architecture`` trained on ``data`` by ``recipe``, and its accuracies."""
    torch.manual_seed(recipe.seed)
    module = TIGraNet(
        Architecture.parse(architecture),
        num_classes=len(data.class_names),
        in_maps=data.train.images.shape[1],
        boundary=boundary,
    )
    start = perf_counter()
    fit(module, data.train, data.validation, recipe, console)
    seconds = perf_counter() - start
    measured = Measured(
        data=data.name,
        architecture=str(module.architecture),
        boundary=boundary,
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        recipe=recipe,
        seconds=round(seconds, 1),
        train=accuracy(module, data.train),
        validation=accuracy(module, data.validation),
        test=accuracy(module, data.test),
        rotated=rotated_accuracy(module, data.test, draws=10, seed=recipe.seed),
    )
    return module, measured
