"""Unknown images by the distance from their nearest neighbours among the training images."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation

NEIGHBOUR = 5
"""Which nearest neighbour counts. Classes may have few images."""


@dataclass(frozen=True)
class NearestNeighbours(Detector):
    r"""The distance of the normalised features from their k-th nearest neighbour among the training images.

    .. math:: s(x) = \| h(x) / \|h(x)\| - r_{(k)} \|

    with the hidden features h, the input of the last layer, and the k-th nearest normalised features r of a training
    image. Sun, Ming, Zhu & Li, "Out-of-Distribution Detection with Deep Nearest Neighbors" (ICML 2022).
    """

    rows: Float[Tensor, "count hidden"]
    """The normalised features of training images."""

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "NearestNeighbours":
        """Keep the normalised features of the training images, see :meth:`Detector.fit`."""
        return cls(_normalise(known.images.hidden))

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the distance of each image from its k-th nearest neighbour, see :meth:`Detector.scores`."""
        distances = torch.cdist(_normalise(images.hidden), self.rows, compute_mode="donot_use_mm_for_euclid_dist")
        return distances.kthvalue(min(NEIGHBOUR, len(self.rows)), dim=1).values


def _normalise(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
