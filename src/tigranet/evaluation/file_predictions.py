"""Predictions and features of image files: any number of files, with one batch in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
        threads: Number of threads that read images while the network computes.

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
    for path, row in apply_to_files(net, function, paths, batch_size, threads):
        if isinstance(row, UnreadableFile):
            yield row
        else:
            yield prediction_of(net, path, row, reject, label_sets, detail)


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
    logits = row[: net.num_classes]
    novelty = round(float(row[-1]), 6) if len(row) > net.num_classes else None
    probability, label = logits.softmax(0).max(0)
    name = net.class_names[int(label)] if is_known(float(probability), novelty, reject) else UNKNOWN
    labels = None
    if label_sets is not None:
        is_in_set = label_sets.calibration.label_sets(logits[None], label_sets.coverage)[0]
        order = logits.argsort(descending=True, stable=True).tolist()
        labels = tuple(net.class_names[index] for index in order if is_in_set[index])
    details = detail.fields(net.class_names, logits)
    return Prediction(str(path), name, round(float(probability), 6), labels, novelty=novelty, **details)


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
        threads: Number of threads that read images while the network computes.

    Yields:
        For each file, in order, its path with its row on the CPU, or with the reason why there is none.

    Raises:
        ValueError: If the network has no image size.
    """
    if net.image_size is None:
        raise ValueError("this model has no image_size, so files cannot be scaled: train it with 'tigranet train'")
    files = read_letterboxed(paths, net.image_size, color=net.in_maps > 1, workers=threads)
    batch_size = limit_batch_size(batch_size, net.image_size, net.image_size)
    is_first_batch = True
    while read := list(islice(files, batch_size)):
        batch = [
            (path, fit_channels(image, net.in_maps) if isinstance(image, Tensor) else image) for path, image in read
        ]
        images = [image for _, image in batch if isinstance(image, Tensor) and image.shape[0] == net.in_maps]
        has_all_files = is_first_batch and len(batch) < batch_size
        is_first_batch = False
        with kernels_for_pixels(net, sum(image[0].numel() for image in images) if has_all_files else None):
            outputs: Iterator[Tensor] = iter(apply_in_batches(net, [torch.stack(images)], function) if images else [])
        for path, image in batch:
            if isinstance(image, UnreadableFile):
                yield path, UnreadableFile(*image)  # whether another attempt may succeed matters to the cache only
            elif image.shape[0] != net.in_maps:
                yield path, UnreadableFile(path, f"has {image.shape[0]} channels, the model reads {net.in_maps}")
            else:
                output = next(outputs)
                yield path, output if output.isfinite().all() else UnreadableFile(path, f"{NOT_FINITE} this image")


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
