"""Predictions and features of image files: any number of files, with one batch in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.batch_size import limit_batch_size
from tigranet.data.letterbox import ImageItem, UnreadableFile, read_letterboxed
from tigranet.data.luminance import fit_channels
from tigranet.evaluation.batched_inference import NOT_FINITE, apply_in_batches, module_device
from tigranet.evaluation.canonical_logits import canonical_logits
from tigranet.evaluation.conformal import ConformalCalibration
from tigranet.evaluation.prediction_detail import NO_DETAIL, Detail, RankedLabel
from tigranet.evaluation.unknown.novelty import UnknownImages, logits_and_novelty
from tigranet.model import TIGraNet
from tigranet.ops.mode import kernel_mode, using

UNKNOWN = "unknown"
"""Label of images that do not look like images of a known class, or whose most probable class is not probable
enough."""
BATCH_SIZE = 64
"""Largest batch size."""
READING_THREADS = 4
"""Number of threads that read images."""
MIN_THREADED_SECONDS = 1e-3
"""Beside a network on the CPU, images that are read faster than this are read without threads: decoding a small image
mostly holds Python's global lock, which the threads of the network need for each of their operations."""
MAX_PLAIN_PIXELS = 224 * 224
"""Number of pixels of all images together up to which plain PyTorch on the CPU takes about as long as the fused kernels
with the time to load them, and several seconds less than these where they have to be compiled first."""


@dataclass(frozen=True)
class Prediction:
    """The most probable class of one image file."""

    path: str
    """Path of the file."""
    label: str
    """Name of the class, or :data:`UNKNOWN` if its probability is too low or the novelty of the image too high."""
    probability: float
    """Probability of the class, rounded to 6 decimals."""
    labels: tuple[str, ...] | None = None
    """If a coverage was asked for, the label set: the classes that the image may have, the most probable first."""
    top: tuple[RankedLabel, ...] | None = None
    """If asked for, the most probable classes in order, whether the label is :data:`UNKNOWN` or not."""
    probabilities: Mapping[str, float] | None = None
    """If asked for, the probability of each class by name, rounded to 6 decimals."""
    novelty: float | None = None
    """If unknown images are detected, how little the image resembles the known classes, rounded to 6 decimals: above 1
    it is unknown."""


class LabelSets(NamedTuple):
    """Which label sets to predict."""

    calibration: ConformalCalibration
    """What the sets are calibrated on."""
    coverage: float
    """The probability with which a set contains the true label."""


def predict_files(
    net: TIGraNet,
    paths: Iterable[ImageItem],
    reject: float = 0.0,
    batch_size: int = BATCH_SIZE,
    *,
    label_sets: LabelSets | None = None,
    detail: Detail = NO_DETAIL,
    unknown: UnknownImages | None = None,
    threads: int = READING_THREADS,
) -> Iterator[Prediction | UnreadableFile]:
    """Predict the class of image files.

    Images are scaled to the size that the network was trained on, and converted to grey or repeated in three channels
    as it needs them. The network computes on its own device, in
    evaluation mode.

    Args:
        net: The network.
        paths: The images: files, or images stored elsewhere. What is already known to be unreadable is passed on.
        reject: Probability below which the label of an image is :data:`UNKNOWN`.
        batch_size: Largest batch size; large images are computed in smaller batches.
        label_sets: Which label sets to predict too. None predicts none. For label sets, images are brought to their
            canonical rotation (see :mod:`tigranet.evaluation.canonical_logits`), so that an image and its quarter
            turns have exactly the same answer.
        detail: Which details to add.
        unknown: How to detect images that show none of the classes, in the same canonical rotation. None detects none.
        threads: Number of threads that read images while the network computes, or 0 for none.

    Yields:
        For each file, in order, its prediction, or the reason why there is none: it cannot be read, or the network
        gives NaN or infinity for it.

    Raises:
        ValueError: If ``reject`` is not a probability, or if the network has no image size.
    """
    check_reject(reject)
    detail.check()
    function = net if label_sets is None else canonical_logits(net)
    if unknown is not None:
        function = logits_and_novelty(net, unknown)
    for entries, rows in _apply_to_batches(net, function, paths, batch_size, threads):
        readable = [path for path, reason in entries if reason is None]
        predictions = iter(_predictions_of(net, readable, rows, reject, label_sets, detail))
        for _, reason in entries:
            yield next(predictions) if reason is None else reason


def check_reject(reject: float) -> None:
    """Check the probability below which a label is :data:`UNKNOWN`.

    Args:
        reject: The probability.

    Raises:
        ValueError: If it is not a probability.
    """
    if not 0 <= reject <= 1:
        raise ValueError(f"reject must be a probability in [0, 1], got {reject}")


def prediction_of(
    net: TIGraNet,
    path: Path,
    row: Float[Tensor, " columns"],
    reject: float,
    label_sets: LabelSets | None,
    detail: Detail = NO_DETAIL,
) -> Prediction:
    """Return the prediction that the logits of an image stand for.

    Args:
        net: The network, for the names of the classes.
        path: Path of the image.
        row: Its logits, followed by its novelty if unknown images are detected.
        reject: Probability below which the label is :data:`UNKNOWN`.
        label_sets: Which label set to predict too, or None.
        detail: Which details to add.

    Returns:
        The prediction.
    """
    return _predictions_of(net, [path], row[None], reject, label_sets, detail)[0]


def _predictions_of(
    net: TIGraNet,
    paths: Sequence[Path],
    rows: Float[Tensor, "batch columns"],
    reject: float,
    label_sets: LabelSets | None,
    detail: Detail,
) -> list[Prediction]:
    """Return the predictions of a batch: an operation per image would take longer than to decode a small image."""
    logits = rows[:, : net.num_classes]
    probabilities, labels = (values.tolist() for values in logits.softmax(1).max(1))
    novelties = rows[:, -1].tolist() if rows.shape[1] > net.num_classes else None
    sets = None if label_sets is None else label_sets.calibration.label_sets(logits, label_sets.coverage)
    predictions = []
    for number, path in enumerate(paths):
        novelty = None if novelties is None else round(novelties[number], 6)
        is_class = is_known(probabilities[number], novelty, reject)
        label_set = None
        if sets is not None:
            order = logits[number].argsort(descending=True, stable=True).tolist()
            label_set = tuple(net.class_names[index] for index in order if sets[number, index])
        predictions.append(
            Prediction(
                str(path),
                net.class_names[labels[number]] if is_class else UNKNOWN,
                round(probabilities[number], 6),
                label_set,
                novelty=novelty,
                **detail.fields(net.class_names, logits[number]),
            )
        )
    return predictions


def is_known(probability: float, novelty: float | None, reject: float) -> bool:
    """Return whether the label of an image is a class, and not :data:`UNKNOWN`.

    Args:
        probability: Probability of its most probable class.
        novelty: How little it resembles the known classes, rounded to 6 decimals; None if it was not computed.
        reject: Probability below which a label is :data:`UNKNOWN`.

    Returns:
        False if the probability is too low or the novelty too high.
    """
    return probability >= reject and (novelty is None or novelty <= 1)


def file_features(
    net: TIGraNet, paths: Iterable[ImageItem], batch_size: int = BATCH_SIZE
) -> Iterator[tuple[Path, Float[Tensor, " features"] | UnreadableFile]]:
    """Compute the invariant features of image files.

    Images are scaled to the size that the network was trained on, and converted to grey or repeated in three channels
    as it needs them. The network computes on its own device, in
    evaluation mode.

    Args:
        net: The network.
        paths: The images: files, or images stored elsewhere. What is already known to be unreadable is passed on.
        batch_size: Largest batch size; large images are computed in smaller batches.

    Yields:
        For each file, in order, its path with its features on the CPU, or with the reason why there are none: it cannot
        be read, or the network gives NaN or infinity for it.

    Raises:
        ValueError: If the network has no image size.
    """
    yield from apply_to_files(net, net.features, paths, batch_size)


def feature_names(net: TIGraNet) -> list[str]:
    """Return the names of the invariant features of a network.

    Each feature is the mean or the variance of one map after a Chebyshev polynomial of some order.

    Args:
        net: The network.

    Returns:
        One name per feature, in the order of ``net.features``.

    Example:
        >>> feature_names(TIGraNet("SC[2,3]-S[1]", 2))[:5]
        ['map0_mean0', 'map0_variance0', 'map0_mean1', 'map0_variance1', 'map1_mean0']
    """
    moments = [f"{name}{order}" for order in range(net.statistics.order + 1) for name in ("mean", "variance")]
    return [f"map{i}_{moment}" for i in range(net.num_features // len(moments)) for moment in moments]


def apply_to_files(
    net: TIGraNet,
    function: Callable[[Tensor], Tensor],
    paths: Iterable[ImageItem],
    batch_size: int,
    threads: int = READING_THREADS,
) -> Iterator[tuple[Path, Tensor | UnreadableFile]]:
    """Apply a function to the images of files, with one batch in memory at a time.

    Args:
        net: The network, for the size and the channels of the images.
        function: From a batch of images to one row of finite numbers per image. The network is in evaluation mode.
        paths: The images: files, or images stored elsewhere. What is already known to be unreadable is passed on.
        batch_size: Largest batch size; large images are computed in smaller batches.
        threads: Number of threads that read images while the network computes, or 0 for none.

    Yields:
        For each file, in order, its path with its row on the CPU, or with the reason why there is none.

    Raises:
        ValueError: If the network has no image size.
    """
    for entries, rows in _apply_to_batches(net, function, paths, batch_size, threads):
        remaining = iter(rows)
        for path, reason in entries:
            yield path, next(remaining) if reason is None else reason


def _apply_to_batches(
    net: TIGraNet,
    function: Callable[[Tensor], Tensor],
    paths: Iterable[ImageItem],
    batch_size: int,
    threads: int,
) -> Iterator[tuple[list[tuple[Path, UnreadableFile | None]], Tensor]]:
    """Do what :func:`apply_to_files` does, batch by batch.

    Yields:
        The path of each file with the reason why there is no row for it, or None; and the rows of the others.
    """
    if net.image_size is None:
        raise ValueError("this model has no image_size, so files cannot be scaled: train it with 'tigranet train'")
    min_threaded_seconds = MIN_THREADED_SECONDS if module_device(net).type == "cpu" else 0.0
    files = read_letterboxed(
        paths, net.image_size, net.in_maps > 1, workers=threads, min_threaded_seconds=min_threaded_seconds
    )
    batch_size = limit_batch_size(batch_size, net.image_size, net.image_size)
    is_first_batch = True
    while batch := list(islice(files, batch_size)):
        entries: list[tuple[Path, UnreadableFile | None]] = []
        images = []
        for path, result in batch:
            image = fit_channels(result, net.in_maps) if isinstance(result, Tensor) else result
            if isinstance(image, UnreadableFile):
                reason: UnreadableFile | None = UnreadableFile(*image)  # only the cache tries again
            elif image.shape[0] != net.in_maps:
                reason = UnreadableFile(path, f"has {image.shape[0]} channels, the model reads {net.in_maps}")
            else:
                reason = None
                images.append(image)
            entries.append((path, reason))
        has_all_files = is_first_batch and len(batch) < batch_size
        is_first_batch = False
        if not images:
            yield entries, torch.empty(0, net.num_classes)
            continue
        with kernels_for_pixels(net, sum(image[0].numel() for image in images) if has_all_files else None):
            rows = apply_in_batches(net, [torch.stack(images)], function)
        is_finite = rows.flatten(1).isfinite().all(1)
        if not is_finite.all():
            finite = iter(is_finite.tolist())
            entries = [
                (path, reason or (None if next(finite) else UnreadableFile(path, f"{NOT_FINITE} this image")))
                for path, reason in entries
            ]
            rows = rows[is_finite]
        yield entries, rows


def kernels_for_pixels(net: TIGraNet, total_pixels: int | None) -> AbstractContextManager[None]:
    """Select plain PyTorch for few images, where loading the fused kernels would take most of the time.

    The choice depends on the images alone, not on whether compiled kernels are stored on this machine, so that the same
    files give the same numbers every time. The user's choice of kernels takes precedence.

    Args:
        net: The network.
        total_pixels: The number of pixels of all images of the call, or None if there may be more images.

    Returns:
        A context in which to compute.
    """
    is_small = total_pixels is not None and total_pixels <= MAX_PLAIN_PIXELS
    plain = is_small and kernel_mode() == "auto" and module_device(net).type == "cpu"
    return using("plain") if plain else nullcontext()
