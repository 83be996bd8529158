"""Unknown images by the Mahalanobis distance from the nearest class."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.representation import KnownImages, Representation
from tigranet.evaluation.unknown.shrunk_covariance import ShrunkCovariance, class_means


@dataclass(frozen=True)
class Mahalanobis(Detector):
    r"""The squared Mahalanobis distance of the features from the nearest class mean.

    .. math:: s(x) = \min_c\, (\phi(x) - \mu_c)^T \Sigma^{-1} (\phi(x) - \mu_c)

    with one covariance matrix :math:`\Sigma` within all classes, shrunk because there are often fewer images than
    features. Lee, Lee, Lee & Shin, "A Simple Unified Framework for Detecting Out-of-Distribution Samples and
    Adversarial Attacks" (NeurIPS 2018).
    """

    means: Float[Tensor, "classes features"]
    """The mean of each class."""
    within: ShrunkCovariance
    """The covariance within classes."""

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "Mahalanobis":
        """Estimate the means and the covariance of the standardised features, see :meth:`Detector.fit`."""
        return cls.estimate(known.images.features, known.labels)

    @classmethod
    def estimate(cls, features: Float[Tensor, "count features"], labels: Int[Tensor, " count"]) -> "Mahalanobis":
        """Estimate the means and the covariance.

        Args:
            features: Features of training images.
            labels: Their labels.

        Returns:
            The detector.
        """
        means, deviations = class_means(features, labels)
        return cls(means, ShrunkCovariance.estimate(deviations))

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the squared distance of each image from the nearest class mean, see :meth:`Detector.scores`."""
        return self.squared_distances(images.features)

    def squared_distances(self, features: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """Return the squared distance from the nearest class mean.

        Args:
            features: Features of images.

        Returns:
            One number per image.
        """
        return self.within.squared_distances(features, self.means).amin(1)
