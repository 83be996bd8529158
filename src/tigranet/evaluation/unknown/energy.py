"""Unknown images by the free energy of their logits."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation


@dataclass(frozen=True)
class Energy(Detector):
    r"""The free energy of the logits, at temperature 1.

    .. math:: s(x) = -\log \sum_j e^{z_j(x)}

    Liu, Wang, Owens & Li, "Energy-based Out-of-distribution Detection" (NeurIPS 2020).
    """

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "Energy":
        """Return the detector, which has nothing to learn, see :meth:`Detector.fit`."""
        return cls()

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the energy of each image, see :meth:`Detector.scores`."""
        return -images.logits.logsumexp(1)
