"""A first answer in seconds: logistic regression on invariant features of a network that is not trained on the data."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.architecture import Architecture
from tigranet.choices import Boundary, WindowOption
from tigranet.choose_window import choose_window
from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.devices import select_device
from tigranet.evaluation.accuracy import accuracy, predict
from tigranet.evaluation.batched_inference import apply_in_batches, require_finite
from tigranet.feature_network import (
    feature_architecture,
    is_saved_network,
    load_feature_network,
    untrained_network,
    with_linear_head,
)
from tigranet.model import TIGraNet
from tigranet.training.process_state import seeded
from tigranet.workflows.linear_head import LinearHead, cross_validate, stratified_folds

FOLDS = 5
"""Number of folds of the cross-validation, fewer if a class has fewer images."""
MAX_IMAGES = 1_000
"""Largest number of training images that a first answer before a training uses, so that it takes seconds."""
BATCH_SIZE = 64
"""Number of small images whose features are computed at a time."""


@dataclass(frozen=True)
class FirstAnswer:
    """A linear classifier on invariant features, and its accuracy on images that it was not fitted to."""

    network: TIGraNet
    """The network with the classifier as its last layer, on the CPU, in evaluation mode."""
    accuracy: float | None
    """Accuracy in per cent; None if there are too few images to measure it."""
    standard_error: float | None
    """Standard error of the accuracy, from the number of images that it was measured on."""
    method: str
    """How the accuracy was measured, such as "5-fold cross-validation"."""
    images: int
    """Number of images that the accuracy was measured on."""
    seconds: float
    """Duration of everything."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values.

        Returns:
            The fields by name, and the layers instead of the network.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "network"}
        return values | {"architecture": str(self.network.architecture), "seconds": round(self.seconds, 1)}

    def __str__(self) -> str:
        if self.accuracy is None:
            return f"not measured: {self.method}"
        return f"{self.accuracy:.1f} ± {self.standard_error:.1f} % ({self.method}, {self.seconds:.1f} s)"


class Comparison(NamedTuple):
    """Accuracies in per cent of a trained network and of the first answer on the same images."""

    trained: float
    """Accuracy of the trained network."""
    first: float
    """Accuracy of the first answer."""
    images: int
    """Number of images."""
    part: str
    """The part of the data set that they are from."""

    def __str__(self) -> str:
        difference = self.trained - self.first
        verdict = "beats" if difference > 0 else "equals" if difference == 0 else "does not beat"
        advice = "; try more epochs, or keep the quick model (--quick)" if difference < 0 else ""
        return (
            f"the trained network {verdict} the linear classifier on invariant features: {self.trained:.1f} % and "
            f"{self.first:.1f} % of {self.images} {self.part} images{advice}"
        )


def compare_with(answer: FirstAnswer, network: TIGraNet, data: DataSet) -> Comparison | None:
    """Compare a trained network with the first answer, on images that neither was trained on.

    Args:
        answer: The first answer.
        network: The trained network, on the CPU.
        data: The data set.

    Returns:
        The accuracies on test images, or on validation images if there are none; None if there are neither. Of many
        images, :data:`MAX_IMAGES` are used.
    """
    part, images = ("test", data.test) if len(data.test.labels) else ("validation", data.validation)
    if not len(images.labels):
        return None
    step = -(-len(images.labels) // MAX_IMAGES)
    drawn = LabelledImages(images.images[::step], images.labels[::step])
    return Comparison(accuracy(network, drawn), accuracy(answer.network, drawn), len(drawn.labels), part)


def first_answer(
    data: DataSet,
    *,
    network: str | Path | Architecture | None = None,
    boundary: Boundary = "free",
    window: WindowOption = "auto",
    margin: int = 0,
    seed: int = 0,
    grouped: bool = False,
    max_images: int | None = None,
    device: str = "auto",
) -> FirstAnswer:
    r"""Fit a logistic regression to the invariant features of the training images, and cross-validate it.

    The features are those of a network with random weights, or of a saved one. They are computed once. The regression
    is fitted to the training images of four of five folds and tested on the fifth, five times; with p correct answers
    out of n images, the standard error is :math:`\sqrt{p (1 - p) / n}`. The network that is returned is fitted to all
    of them.

    Args:
        data: The data set. Test images are not used.
        network: Layers of a network with random weights, or the folder or the name of a saved network. By default
            those of :func:`tigranet.feature_network.feature_architecture`.
        boundary: The boundary of the grid of a new network.
        window: The window of a new network, see :func:`tigranet.choose_window.choose_window`.
        margin: The margin of a new network.
        seed: Seed of the random weights and of the folds.
        grouped: Whether several images show the same object. Then the accuracy is measured on the validation images,
            because cross-validation would test on other images of the same objects.
        max_images: Largest number of training images to use, drawn at random; None uses all.
        device: Where to compute the features, see :func:`tigranet.devices.select_device`.

    Returns:
        The classifier and its accuracy.

    Raises:
        FileNotFoundError: If there is no saved network of this name.
        ValueError: If a saved network reads another number of channels, or if there is only one class.
    """
    start = perf_counter()
    train = draw_images(data.train, max_images, seed)
    height, width = train.images.shape[2:]
    arguments = {"class_names": list(data.class_names), "image_size": height if height == width else None}
    if network is None:
        network = feature_architecture(train.images)
    with seeded(seed):
        if isinstance(network, str | Path) and is_saved_network(network):
            features = load_feature_network(network, train.images)
        else:
            layers = network if isinstance(network, Architecture) else Architecture.parse(str(network))
            chosen = choose_window(window, layers, train.images).window
            features = untrained_network(layers, train.images, boundary=boundary, window=chosen, margin=margin)
        linear = with_linear_head(features, len(data.class_names), **arguments)
    linear.to(select_device(device))
    statistics = compute_features(linear, train.images)
    LinearHead.fit(statistics, train.labels, len(data.class_names)).copy_to(linear)
    is_correct, method = _measure(linear, statistics, train, data.validation, seed, grouped)
    linear.cpu()
    count = len(is_correct)
    share = float(is_correct.double().mean()) if count else math.nan
    return FirstAnswer(
        network=linear,
        accuracy=100 * share if count else None,
        standard_error=100 * math.sqrt(share * (1 - share) / count) if count else None,
        method=method,
        images=count,
        seconds=perf_counter() - start,
    )


def compute_features(
    network: TIGraNet, images: Float[Tensor, "count maps height width"]
) -> Float[Tensor, "count statistics"]:
    """Compute the invariant features of images in batches.

    Args:
        network: The network; it computes on its own device.
        images: The images.

    Returns:
        The features, on the CPU.

    Raises:
        ValueError: If a feature is NaN or infinite.
    """
    batches = images.split(limit_batch_size(BATCH_SIZE, *images.shape[2:]))
    return require_finite(apply_in_batches(network, batches, network.features))


def draw_images(images: LabelledImages, count: int | None, seed: int) -> LabelledImages:
    """Draw images at random, with at least two of each class that has two.

    Args:
        images: The images.
        count: Largest number of images; None for all.
        seed: Seed.

    Returns:
        The drawn images in their order, or ``images`` itself if there are not more. There may be up to two more per
        class.
    """
    if count is None or len(images.labels) <= count:
        return images
    order = torch.randperm(len(images.labels), generator=torch.Generator().manual_seed(seed))
    labels = images.labels[order]
    first = [order[labels == label][:2] for label in labels.unique()]
    return images.take(torch.cat([order[:count], *first]).unique())


def _measure(
    linear: TIGraNet,
    statistics: Float[Tensor, "images statistics"],
    train: LabelledImages,
    validation: LabelledImages,
    seed: int,
    grouped: bool,
) -> tuple[Tensor, str]:
    """Return whether each measured image is classified correctly, and how this was measured."""
    counts = train.labels.bincount()
    folds = min(FOLDS, int(counts[counts > 0].min()))
    if grouped or folds < 2:
        if not len(validation.labels):
            return torch.zeros(0, dtype=torch.bool), "too few training images per class, and no validation images"
        is_correct = predict(linear, validation.images) == validation.labels
        return is_correct, f"{len(validation.labels)} validation images"
    is_correct = cross_validate(statistics, train.labels, stratified_folds(train.labels, folds, seed))
    return is_correct, f"{folds}-fold cross-validation of {len(train.labels)} training images"
