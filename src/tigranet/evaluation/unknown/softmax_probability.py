"""Unknown images by the probability of the most probable class."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation


@dataclass(frozen=True)
class SoftmaxProbability(Detector):
    r"""Minus the probability of the most probable class.

    .. math:: s(x) = -\max_j p_j(x), \qquad p(x) = \mathrm{softmax}\, z(x)

    Hendrycks & Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural Networks"
    (ICLR 2017). The logarithm of p is used, which orders images in the same way and does not round to 1.
    """

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "SoftmaxProbability":
        """Return the detector, which has nothing to learn, see :meth:`Detector.fit`."""
        return cls()

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return minus the logarithm of the highest probability, see :meth:`Detector.scores`."""
        return -images.logits.log_softmax(1).amax(1)
