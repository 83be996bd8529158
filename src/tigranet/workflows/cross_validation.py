"""k-fold cross-validation of a whole training: every image is tested once by a network that was not trained on it."""

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import mean, pstdev
from time import perf_counter
from typing import Any

from rich.console import Console

from tigranet.atomic_files import atomic_write
from tigranet.data.dataset import DataSet
from tigranet.data.folds import folded_parts, make_folds
from tigranet.data.leakage import hash_images
from tigranet.data.shards.stored_images import StoredImages
from tigranet.evaluation.accuracy import moved_accuracy, predict
from tigranet.evaluation.accuracy_interval import AccuracyInterval, accuracy_interval
from tigranet.json_file import read_json_object
from tigranet.model import TIGraNet
from tigranet.model_folder import FOLD_RESULTS, FOLDS
from tigranet.training import Hardware, Recipe
from tigranet.workflows.measured_training import train_module
from tigranet.workflows.saved_run import SavedRun

MAX_RESULT_BYTES = 2**20
"""Largest size of the file of results."""


@dataclass(frozen=True)
class FoldResult:
    """What one fold measured."""

    fold: int
    """Number of the fold, from 1."""
    train_images: int
    """Number of training images."""
    validation_images: int
    """Number of validation images."""
    test_images: int
    """Number of test images."""
    correct: int
    """Number of test images that were classified correctly, as they are."""
    accuracy: float
    """The same in per cent."""
    moved: float
    """Accuracy in per cent on moved test images, the mean over several random movements."""
    seconds: float
    """Duration of the training and the measurement."""


@dataclass(frozen=True)
class CrossValidation:
    """Accuracies of all folds in per cent."""

    folds: tuple[FoldResult, ...]
    """The folds."""
    how: str
    """The movement of the test images of ``moved``."""
    unmoved: str
    """What unmoved images are called, see :attr:`tigranet.data.DataSet.unmoved`."""

    @property
    def images(self) -> int:
        """Number of images. Each was tested once."""
        return sum(fold.test_images for fold in self.folds)

    @property
    def accuracy(self) -> float:
        """Accuracy on all images, as they are."""
        return 100 * sum(fold.correct for fold in self.folds) / self.images

    @property
    def moved(self) -> float:
        """Accuracy on all images, moved at random."""
        return sum(fold.moved * fold.test_images for fold in self.folds) / self.images

    @property
    def interval(self) -> AccuracyInterval:
        """The 95 % confidence interval of ``accuracy``."""
        return accuracy_interval(self.accuracy, self.images)

    @property
    def moved_interval(self) -> AccuracyInterval:
        """The 95 % confidence interval of ``moved``. Several movements of one image count once."""
        return accuracy_interval(self.moved, self.images)

    def to_json(self) -> dict[str, Any]:
        """Return plain values.

        Returns:
            The accuracies with their intervals, mean and standard deviation over the folds, and one row per fold.
        """
        by_fold = [fold.accuracy for fold in self.folds]
        return {
            "folds": len(self.folds),
            "images": self.images,
            "accuracy": self.accuracy,
            "interval": self.interval.to_json(),
            "mean": mean(by_fold),
            "std": pstdev(by_fold),
            "moved": {"how": self.how, "accuracy": self.moved, "interval": self.moved_interval.to_json()},
            "rows": [asdict(fold) for fold in self.folds],
        }

    def describe(self) -> list[str]:
        """Return the accuracies as sentences for the user.

        Returns:
            One line for images as they are, and one for moved images unless they are not moved.
        """
        by_fold = [fold.accuracy for fold in self.folds]
        spread = f"{min(by_fold):.1f} to {max(by_fold):.1f} % in single folds"
        title = f"{len(self.folds)}-fold cross-validation"
        lines = [f"{title}, {self.unmoved}: {self.accuracy:.1f} %, {self.interval}; {spread}"]
        if self.how != self.unmoved:
            lines.append(f"{title}, {self.how}: {self.moved:.1f} %, {self.moved_interval}")
        return lines


def check_folds(folds: int, quick: bool, train_images: int | None, hardware: Hardware | None) -> None:
    """Check that a cross-validation does not contradict the other arguments of a training.

    Args:
        folds: Number of folds.
        quick: Whether a linear classifier is fitted instead of a training.
        train_images: Number of images to train on, if it was given.
        hardware: What to train on.

    Raises:
        ValueError: If it does.
    """
    if folds < 2:
        raise ValueError(f"expected at least 2 folds, got {folds}")
    if quick:
        raise ValueError("quick is cross-validated already, without folds: leave out one")
    if train_images is not None:
        raise ValueError("folds use all images, and train_images only some: leave out one")
    if hardware is not None and hardware.devices * hardware.nodes > 1:
        raise ValueError(f"folds are trained on 1 device, got {hardware.devices * hardware.nodes}: leave out one")


def check_in_memory(data: DataSet) -> None:
    """Check that the images of a data set can be divided into folds.

    Args:
        data: The data set.

    Raises:
        ValueError: If its images are in shards.
    """
    if isinstance(data.train.images, StoredImages):
        raise ValueError(
            f"cross-validation needs images in memory, and those of '{data.name}' are in shards: leave out folds"
        )


def known_image_notices(init: str | Path, data: DataSet) -> list[str]:
    """Tell the user if a network that all folds start from was trained on images that are tested.

    Args:
        init: The folder or the name of the network.
        data: The data set whose images are folded.

    Returns:
        One sentence, or none.
    """
    known = SavedRun.read(init).training_hashes
    parts = folded_parts(data) if known else []
    count = sum(content in known for part in parts for content in hash_images(part.images))
    if not count:
        return []
    return [f"'{init}' was trained on {count} of the images: the accuracy of the folds is too high"]


def cross_validate(
    data: DataSet,
    folds: int,
    new_network: Callable[[DataSet], TIGraNet],
    recipe: Recipe,
    *,
    seed: int = 0,
    folder: Path | None = None,
    resume: bool = False,
    console: Console | None = None,
    **fit_options: Any,
) -> CrossValidation:
    """Train and measure one network per fold, see :func:`tigranet.data.folds.make_folds`.

    The result of each fold is written to a file when it is finished, and a fold in progress writes checkpoints. A run
    with ``resume`` uses what it finds there.

    Args:
        data: The data set. Test images that somebody chose are not used; those that were drawn at random are.
        folds: Number of folds.
        new_network: Returns an untrained network for the data of a fold.
        recipe: How to train each network.
        seed: Seed of the folds.
        folder: The output folder of the training; without one nothing is written.
        resume: Whether to use the finished folds, and the checkpoint of a fold that was interrupted, in ``folder``.
        console: Where to show progress.
        **fit_options: Further arguments of :func:`tigranet.training.fit`.

    Returns:
        The accuracies of all folds.

    Raises:
        ValueError: If the images cannot be divided into folds, or if ``folder`` holds folds of another training.
    """
    from tigranet.training.checkpoints import training_fingerprint  # imports Lightning

    divided = make_folds(data, folds, seed)
    record = _Record(None if folder is None else folder / FOLDS, resume)
    results: list[FoldResult] = []
    for number, fold in enumerate(divided, start=1):
        network = new_network(fold)
        fingerprint = training_fingerprint(network, fold.train, fold.validation, recipe)
        result = record.find(number, folds, fingerprint)
        if result is None:
            counts = [len(part.labels) for part in (fold.train, fold.validation, fold.test)]
            _print(
                console,
                f"fold {number} of {folds}: {counts[0]} training, {counts[1]} validation and {counts[2]} test images",
            )
            options = fit_options | record.fit_options(number)
            result = _measure_fold(number, fold, network, recipe, console, options)
            record.add(result, folds, fingerprint)
            results.append(result)
            _print(console, _describe_fold(results, folds))
        else:
            results.append(result)
            _print(console, f"fold {number} of {folds}: {result.accuracy:.1f} %, from the interrupted run")
    return CrossValidation(tuple(results), str(data.test_motion), data.unmoved)


def _measure_fold(
    number: int, fold: DataSet, network: TIGraNet, recipe: Recipe, console: Console | None, options: dict[str, Any]
) -> FoldResult:
    start = perf_counter()
    train_module(network, fold, recipe, console, **options)
    correct = int((predict(network, fold.test.images) == fold.test.labels).sum())
    count = len(fold.test.labels)
    return FoldResult(
        fold=number,
        train_images=len(fold.train.labels),
        validation_images=len(fold.validation.labels),
        test_images=count,
        correct=correct,
        accuracy=100 * correct / count,
        moved=moved_accuracy(network, fold.test, fold.test_motion, recipe.seed).mean,
        seconds=round(perf_counter() - start, 1),
    )


def _describe_fold(results: Sequence[FoldResult], folds: int) -> str:
    """Describe the last fold, and how long the others and the training of the model will take."""
    from tigranet.training.duration import describe_duration

    last = results[-1]
    remaining = describe_duration(last.seconds * (folds + 1 - len(results)))  # the first fold also compiles kernels
    accuracy = f"{last.accuracy:.1f} % of {last.test_images} test images in {last.seconds:.0f} s"
    return f"fold {last.fold} of {folds}: {accuracy}; remaining, with the training of the model: {remaining}"


class _Record:
    """The finished folds of a run, in a file."""

    def __init__(self, folder: Path | None, resume: bool) -> None:
        self._folder, self._rows = folder, list[dict[str, Any]]()
        self._resume = resume
        if folder is None:
            return
        path = folder / FOLD_RESULTS
        if resume and path.is_file():
            rows = read_json_object(path, MAX_RESULT_BYTES, "a record of folds").get("rows")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise ValueError(f"'{path}' is not a record of folds: expected a list of rows. Train without resuming")
            self._rows = rows
        else:
            folder.mkdir(parents=True, exist_ok=True)
            for checkpoint in folder.glob("fold-*/*.ckpt"):  # of an earlier training
                checkpoint.unlink()
            self._write()

    def fit_options(self, number: int) -> dict[str, Any]:
        if self._folder is None:
            return {"resume": False}
        return {"folder": self._folder / f"fold-{number}", "resume": self._resume}

    def find(self, number: int, folds: int, fingerprint: str) -> FoldResult | None:
        row = next((row for row in self._rows if row.get("fold") == number), None)
        if row is None:
            return None
        if row.get("training") != fingerprint or row.get("folds") != folds:
            raise ValueError(
                f"the folds in '{self._folder}' belong to a different training (its images, network, recipe, seed or "
                "number of folds differ): use the original settings, or train without resuming"
            )
        return _fold_of_row(row, f"{self._folder}/{FOLD_RESULTS}")

    def add(self, result: FoldResult, folds: int, fingerprint: str) -> None:
        if self._folder is None:
            return
        self._rows.append(asdict(result) | {"folds": folds, "training": fingerprint})
        self._write()
        for checkpoint in (self._folder / f"fold-{result.fold}").glob("*.ckpt"):
            checkpoint.unlink()

    def _write(self) -> None:
        assert self._folder is not None
        with atomic_write(self._folder / FOLD_RESULTS) as file:
            json.dump({"rows": self._rows}, file, indent=2)


def _fold_of_row(row: Mapping[str, Any], path: str) -> FoldResult:
    values: dict[str, Any] = {field.name: row.get(field.name) for field in fields(FoldResult)}
    for field in fields(FoldResult):
        value = values[field.name]
        is_number = isinstance(value, int if field.type is int else int | float) and not isinstance(value, bool)
        if not is_number or value < 0:
            raise ValueError(
                f"'{path}' is not a record of folds: expected {field.name} to be a number, got {reprlib.repr(value)}. "
                "Train without resuming"
            )
        values[field.name] = value if field.type is int else float(value)
    result = FoldResult(**values)
    if not (0 < result.test_images >= result.correct and max(result.accuracy, result.moved) <= 100):
        raise ValueError(
            f"'{path}' is not a record of folds: its numbers contradict each other. Train without resuming"
        )
    return result


def _print(console: Console | None, line: str) -> None:
    if console:
        console.print(line, markup=False, soft_wrap=True)
