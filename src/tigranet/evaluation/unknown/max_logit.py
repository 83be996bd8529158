"""Unknown images by their largest logit."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation


@dataclass(frozen=True)
class MaxLogit(Detector):
    r"""Minus the largest logit.

    .. math:: s(x) = -\max_j z_j(x)

    Hendrycks et al., "Scaling Out-of-Distribution Detection for Real-World Settings" (ICML 2022).
    """

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "MaxLogit":
        """Return the detector, which has nothing to learn, see :meth:`Detector.fit`."""
        return cls()

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return minus the largest logit of each image, see :meth:`Detector.scores`."""
        return -images.logits.amax(1)
