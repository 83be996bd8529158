"""Explain the prediction for one image in memory: label, probabilities, and the evidence for a class."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.batched_inference import module_device
from tigranet.evaluation.evidence import evidence_maps
from tigranet.evaluation.file_explanations import class_index
from tigranet.model import TIGraNet
from tigranet.serving.image_input import RotatedImage


@dataclass(frozen=True)
class ImageExplanation:
    """The probabilities of an image, and the evidence for a class.

    They are the same, bit for bit, for a square image of at most
    :data:`~tigranet.serving.image_input.MAX_CANONICAL_PIXELS` pixels and its quarter turns; the map rotates with it.
    """

    probabilities: Float[Tensor, " classes"]
    """Probabilities of all classes, in double precision."""
    explained_class: str
    """Name of the class that the evidence is for or against."""
    evidence: Float[Tensor, "size size"]
    """Evidence of each pixel that the network reads, see :func:`~tigranet.evaluation.evidence.evidence_maps`."""
    score: float
    """The logit of the explained class minus the mean of all logits."""
    constant: float
    """The part of the score that no pixel contributes to; the evidence sums to the rest."""
    label: str
    """Name of the most probable class, or 'unknown'."""
    unknown: bool = False
    """Whether the label is 'unknown': the image resembles none of the classes, or no class is probable enough."""


def explain_image(net: TIGraNet, rotated: RotatedImage, explained_class: str | None = None) -> ImageExplanation:
    """Compute the probabilities of one image, and the evidence for a class.

    Images are computed one by one, because the last digits of an answer depend on the size of its batch.

    Args:
        net: The network, in evaluation mode.
        rotated: The image, from :func:`~tigranet.serving.image_input.prepare_rotated_image`.
        explained_class: Name of the class to explain. None explains the most probable class.

    Returns:
        The explanation. Its map belongs to the image as it was before the rotation to its canonical rotation. Numbers
        may be NaN or infinity if the weights are too large.

    Raises:
        ValueError: If there is no class of this name.
    """
    classes = None if explained_class is None else torch.tensor([class_index(net, explained_class)])
    evidence = evidence_maps(net, rotated.image[None].to(module_device(net)), classes)
    probabilities = evidence.logits.softmax(1)[0]
    return ImageExplanation(
        probabilities=probabilities,
        explained_class=net.class_names[int(evidence.classes[0])],
        evidence=torch.rot90(evidence.maps[0].cpu(), -rotated.quarter_turns, (0, 1)),
        score=float(evidence.scores[0]),
        constant=float(evidence.constants[0]),
        label=net.class_names[int(probabilities.argmax())],
    )
