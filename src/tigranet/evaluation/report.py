"""Every number of the report on a network."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from torch import Tensor

from tigranet.baselines.convnet import ConvNet
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.class_report import (
    ClassFigures,
    Mistake,
    confident_mistakes,
    confusion,
    figures_by_class,
)
from tigranet.evaluation.curves import (
    ANGLES,
    Curve,
    against_angle,
    against_shift,
    change_by_angle,
    shift_lengths,
    turned,
)
from tigranet.evaluation.predictions import Transform, predict_classes
from tigranet.evaluation.provenance import machine, versions
from tigranet.evaluation.robustness import Robustness, check_compatible, measure_robustness
from tigranet.model import TIGraNet

QUARTERS = (90, 180, 270)
CURVE_IMAGES = 1000
"""The curves are drawn with at most this many test images; the accuracies beside them are those of all."""
CHANGE_IMAGES = 100
"""The change of the answers is measured on at most this many."""


@dataclass(frozen=True)
class QuarterTurn:
    """All test images turned by a multiple of 90 degrees, to the pixel."""

    degrees: int
    right: int
    changed: int
    """Images whose answer is not that to the upright image."""


@dataclass(frozen=True)
class Subject:
    """One network, measured."""

    name: str
    architecture: str
    parameters: int
    robustness: Robustness
    right: int
    """Of the test images, upright."""
    quarter_turns: tuple[QuarterTurn, ...]
    by_angle: Curve
    by_shift: Curve
    change: dict[str, tuple[float, ...]]
    """By what is looked at, its invariance error at the angles of ``by_angle``."""

    def exact(self) -> bool:
        """Whether no answer changes when the image is turned by 90, 180 or 270 degrees."""
        return all(turn.changed == 0 for turn in self.quarter_turns)


@dataclass(frozen=True)
class DataFigures:
    """What was measured on."""

    name: str
    how_split: str
    moved: str
    outside: str
    size: tuple[int, int]
    channels: int
    images: dict[str, tuple[int, ...]]
    """By part (train, validation, test), the images of each class."""
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A network on a data set, beside a plain CNN where there is one, and how all of it came about."""

    data: DataFigures
    subjects: tuple[Subject, ...]
    """The network, then the CNN."""
    confusion: tuple[tuple[int, ...], ...]
    """Rows are what the images are, columns what the network said, upright."""
    classes: tuple[ClassFigures, ...]
    mistakes: int
    confident_mistakes: tuple[Mistake, ...]
    change_images: int
    seed: int
    made: dict[str, Any]
    """The command, the recipe of the CNN, versions, machine, date."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        subjects = [asdict(subject) | {"robustness": subject.robustness.to_json()} for subject in self.subjects]
        return asdict(self) | {"subjects": subjects}


def report_on(
    net: TIGraNet,
    data: DataSet,
    rival: ConvNet | None = None,
    *,
    seed: int = 0,
    curve_images: int = CURVE_IMAGES,
    how_split: str = "",
    made: dict[str, Any] | None = None,
    console: Console | None = None,
) -> Report:
    """Measure ``net`` and its ``rival`` on the test images of ``data``; the same arguments give the same numbers.

    ``how_split`` and ``made`` are for the reader. Progress is drawn on ``console``, if one is given.
    """
    check_compatible(net, data)
    if curve_images < 1:
        raise ValueError(f"the curves need at least 1 image, got {curve_images}")
    networks: list[tuple[str, TIGraNet | ConvNet]] = [("TIGraNet", net)]
    if rival is not None:
        networks.append(("plain CNN", rival))
    some = _draw(data.test, curve_images, seed)
    few = _draw(data.test, CHANGE_IMAGES, seed)
    lengths = shift_lengths(min(data.test.images.shape[2:]))
    with _progress(console) as bar:
        steps = len(networks) * (4 + len(ANGLES) * 2 + 4 * len(lengths)) + len(ANGLES)
        task = bar.add_task("measuring", total=steps) if bar else None

        def step(count: int = 1) -> None:
            if bar and task is not None:
                bar.advance(task, count)

        subjects = tuple(_subject(name, module, data, some, few, seed, step) for name, module in networks)
    seen = predict_classes(net, data.test.images)
    return Report(
        data=_data_figures(data, how_split),
        subjects=subjects,
        confusion=tuple(tuple(map(int, row)) for row in confusion(data.test, seen, len(data.class_names))),
        classes=figures_by_class(data.test, seen, data.class_names),
        mistakes=len(data.test.labels) - seen.right(data.test),
        confident_mistakes=confident_mistakes(data.test, seen, data.class_names, data.test_files),
        change_images=len(few.labels),
        seed=seed,
        made=(made or {})
        | {"versions": versions(), "machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")},
    )


def _subject(
    name: str,
    module: TIGraNet | ConvNet,
    data: DataSet,
    some: LabelledImages,
    few: LabelledImages,
    seed: int,
    step: Callable[..., None],
) -> Subject:
    outside = data.test_motion.padding
    upright = predict_classes(module, data.test.images)
    quarters = []
    for degrees in QUARTERS:
        seen = predict_classes(module, data.test.images, partial(turned, degrees=float(degrees)))
        changed = int((seen.classes != upright.classes).sum())
        quarters.append(QuarterTurn(degrees, seen.right(data.test), changed))
        step()
    robustness = measure_robustness(module, data, seed)
    step()
    looked_at: dict[str, Transform] = {"logits": module}
    if isinstance(module, TIGraNet):
        looked_at = {"features": module.features} | looked_at
    device = next(module.parameters()).device
    return Subject(
        name=name,
        architecture=str(module.architecture),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        robustness=robustness,
        right=upright.right(data.test),
        quarter_turns=tuple(quarters),
        by_angle=against_angle(module, some, outside, step=step),
        by_shift=against_shift(module, some, outside, step=lambda: step(4)),
        change={
            what: change_by_angle(function, few.images.to(device), outside, step=step)
            for what, function in looked_at.items()
        },
    )


def _draw(data: LabelledImages, at_most: int, seed: int) -> LabelledImages:
    """All, or as many drawn by ``seed``."""
    chosen = torch.randperm(len(data.labels), generator=torch.Generator().manual_seed(seed))[:at_most]
    return data.take(chosen.sort().values)


def _data_figures(data: DataSet, how_split: str) -> DataFigures:
    def images(labels: Tensor) -> tuple[int, ...]:
        return tuple(torch.bincount(labels, minlength=len(data.class_names)).tolist())

    channels, height, width = data.test.images.shape[1:]
    return DataFigures(
        name=data.name,
        how_split=how_split,
        moved=str(data.test_motion),
        outside=data.test_motion.padding,
        size=(height, width),
        channels=channels,
        images={part: images(getattr(data, part).labels) for part in ("train", "validation", "test")},
        class_names=data.class_names,
    )


def _progress(console: Console | None) -> Progress | nullcontext[None]:
    if console is None:
        return nullcontext()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
