"""Answers for a batch in which some images cannot be used: each has an answer or the reason why there is none."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tigranet.data.image_errors import UnreadableImageError
from tigranet.evaluation.batched_inference import NOT_FINITE
from tigranet.serving.answer import Answer


def answers_with_errors(
    images: Sequence[Any],
    prepare: Callable[[Any], Tensor],
    compute: Callable[[Sequence[Tensor]], Tensor],
    answer: Callable[[Tensor], Answer],
    num_classes: int,
) -> dict[str, np.ndarray]:
    """Predict the images that can be used.

    Args:
        images: The images. An array that holds only None stands for an image that is missing.
        prepare: Brings one image to what the network reads, or raises ``UnreadableImageError``.
        compute: From at least one prepared image to one row of numbers each.
        answer: From rows of numbers to labels and probabilities.
        num_classes: Number of classes.

    Returns:
        The arrays ``label``, ``probability``, ``probabilities``, ``unknown`` and ``error``. Where there is an error,
        the label is None, the probabilities are NaN, and ``unknown`` is False; elsewhere the error is None.
    """
    count = len(images)
    label, error = np.full(count, None, object), np.full(count, None, object)
    probability = np.full(count, np.nan, np.float32)
    probabilities = np.full((count, num_classes), np.nan, np.float32)
    unknown = np.zeros(count, bool)
    prepared: list[Tensor] = []
    positions: list[int] = []
    for position, image in enumerate(images):
        try:
            if isinstance(image, np.ndarray) and image.shape == () and image.dtype == object:
                raise UnreadableImageError("there is no image")
            prepared.append(prepare(image))
            positions.append(position)
        except UnreadableImageError as reason:
            error[position] = str(reason)
    if prepared:
        rows = compute(prepared)
        is_finite = rows.isfinite().all(1)
        answers = answer(torch.where(is_finite[:, None], rows, 0.0))
        for index, position in enumerate(positions):
            if is_finite[index]:
                label[position] = answers.label[index]
                probability[position] = answers.probability[index]
                probabilities[position] = answers.probabilities[index]
                unknown[position] = answers.unknown[index]
            else:
                error[position] = f"{NOT_FINITE} this image"
    return {
        "label": label,
        "probability": probability,
        "probabilities": probabilities,
        "unknown": unknown,
        "error": error,
    }
