"""Unknown images by a virtual logit, from the part of the features that training images do not have."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation


@dataclass(frozen=True)
class VirtualLogit(Detector):
    r"""The logarithm of the odds of an additional class, whose logit is the norm of the residual features.

    .. math:: s(x) = \alpha \|(I - P P^T) (h(x) - o)\| - \log \sum_j e^{z_j(x)}

    with the hidden features h, the origin :math:`o = -W^+ b` of the last layer, the principal directions P of the
    training images around o, and the factor :math:`\alpha` for which the virtual logit of training images has the mean
    of their largest logits. P has half of the directions, at least as many as there are classes. Wang, Li, Feng &
    Zhang, "ViM: Out-Of-Distribution with Virtual-logit Matching" (CVPR 2022).
    """

    origin: Float[Tensor, " hidden"]
    """The origin o."""
    residual: Float[Tensor, "hidden rest"]
    """An orthonormal basis of the directions that P leaves out."""
    factor: Float[Tensor, ""]
    """The factor alpha."""

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "VirtualLogit":
        """Estimate the principal directions and the factor, see :meth:`Detector.fit`."""
        origin = -torch.linalg.pinv(known.weight) @ known.bias
        deviations = known.images.hidden - origin
        _, vectors = torch.linalg.eigh(deviations.T @ deviations)  # by increasing variance
        dimensions = len(origin)
        kept = min(max(dimensions // 2, len(known.bias)), dimensions - 1)
        residual = vectors[:, : dimensions - kept]
        norms = (deviations @ residual).norm(dim=1)
        factor = known.images.logits.amax(1).mean() / norms.mean().clamp(min=1e-12)
        return cls(origin, residual, factor)

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the virtual logit of each image plus the energy of its logits, see :meth:`Detector.scores`."""
        norms = ((images.hidden - self.origin) @ self.residual).norm(dim=1)
        return self.factor * norms - images.logits.logsumexp(1)
