"""Predictions of image files with their evidence maps: any number of files, with one batch in memory at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.letterbox import ImageItem, UnreadableFile
from tigranet.evaluation.evidence import evidence_maps
from tigranet.evaluation.file_predictions import LabelSets, Prediction, apply_to_files, check_reject, prediction_of
from tigranet.evaluation.prediction_detail import NO_DETAIL, Detail
from tigranet.evaluation.unknown.novelty import UnknownImages, logits_and_novelty
from tigranet.model import TIGraNet

EXPLAINED_BATCH_SIZE = 16
"""Largest batch size. The maps of all layers of a batch are in memory."""


@dataclass(frozen=True)
class Explanation:
    """The prediction for one image file, and the evidence for a class."""

    prediction: Prediction
    """The prediction."""
    explained_class: str
    """Name of the class that the evidence is for or against."""
    image: Float[Tensor, "maps size size"]
    """The image as the network reads it."""
    evidence: Float[Tensor, "size size"]
    """Evidence of each pixel, see :func:`~tigranet.evaluation.evidence.evidence_maps`."""
    score: float
    """The logit of the explained class minus the mean of all logits."""
    constant: float
    """The part of the score that no pixel contributes to; the evidence sums to the rest."""


def explain_files(
    net: TIGraNet,
    paths: Iterable[ImageItem],
    reject: float = 0.0,
    *,
    explained_class: str | None = None,
    label_sets: LabelSets | None = None,
    detail: Detail = NO_DETAIL,
    unknown: UnknownImages | None = None,
    batch_size: int = EXPLAINED_BATCH_SIZE,
) -> Iterator[Explanation | UnreadableFile]:
    """Predict the class of image files, and explain the predictions.

    Args:
        net: The network.
        paths: The images: files, or images stored elsewhere. What is already known to be unreadable is passed on.
        reject: Probability below which the label of an image is unknown. The most probable class is explained
            nevertheless.
        explained_class: Name of the class to explain. None explains the most probable class of each image.
        label_sets: Which label sets to predict too. None predicts none.
        detail: Which details to add to the predictions.
        unknown: How to detect images that show none of the classes. None detects none.
        batch_size: Largest batch size; large images are computed in smaller batches.

    Yields:
        For each file, in order, its explanation, or the reason why there is none: it cannot be read, or the network
        gives NaN or infinity for it.

    Raises:
        ValueError: If ``reject`` is not a probability, if there is no class of this name, or if the network has no
            image size.
    """
    check_reject(reject)
    detail.check()
    index = None if explained_class is None else class_index(net, explained_class)
    answers = None if unknown is None else logits_and_novelty(net, unknown)

    def rows(images: Tensor) -> Tensor:
        classes = None if index is None else torch.full((len(images),), index)
        evidence = evidence_maps(net, images, classes)
        answer = evidence.logits if answers is None else answers(images)
        columns = (answer, evidence.scores, evidence.constants, evidence.maps, images)
        return torch.cat([column.cpu().double().reshape(len(images), -1) for column in columns], dim=1)

    for path, row in apply_to_files(net, rows, paths, batch_size):
        if isinstance(row, UnreadableFile):
            yield row
            continue
        assert net.image_size is not None
        pixels = net.image_size**2
        answer_columns = len(row) - 2 - pixels - net.in_maps * pixels
        answer, numbers, evidence, image = row.split([answer_columns, 2, pixels, net.in_maps * pixels])
        score, constant = numbers.tolist()
        yield Explanation(
            prediction=prediction_of(net, path, answer, reject, label_sets, detail),
            explained_class=net.class_names[int(answer[: net.num_classes].argmax()) if index is None else index],
            image=image.reshape(net.in_maps, net.image_size, net.image_size).float(),
            evidence=evidence.reshape(net.image_size, net.image_size).float(),
            score=score,
            constant=constant,
        )


def class_index(net: TIGraNet, name: str) -> int:
    """Return the index of a class.

    Args:
        net: The network.
        name: Name of the class.

    Returns:
        The index.

    Raises:
        ValueError: If there is no class of this name.
    """
    if name not in net.class_names:
        shown = ", ".join(net.class_names[:20]) + (", ..." if len(net.class_names) > 20 else "")
        raise ValueError(f"there is no class '{name}', expected one of {shown}")
    return net.class_names.index(name)
