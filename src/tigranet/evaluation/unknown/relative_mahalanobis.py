"""Unknown images by the Mahalanobis distance from the nearest class, relative to that from all images."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.representation import KnownImages, Representation
from tigranet.evaluation.unknown.shrunk_covariance import ShrunkCovariance


@dataclass(frozen=True)
class RelativeMahalanobis(Detector):
    r"""The squared Mahalanobis distance from the nearest class minus that from the mean of all images.

    .. math:: s(x) = \min_c\, (\phi - \mu_c)^T \Sigma^{-1} (\phi - \mu_c) - (\phi - \mu)^T \Sigma_0^{-1} (\phi - \mu)

    with the mean :math:`\mu` and the covariance :math:`\Sigma_0` of all images, regardless of their classes. Directions
    in which no class differs from another then do not count. Ren et al., "A Simple Fix to Mahalanobis Distance for
    Improving Near-OOD Detection" (2021).
    """

    classes: Mahalanobis
    """The distance from the nearest class."""
    mean: Float[Tensor, " features"]
    """The mean of all images."""
    total: ShrunkCovariance
    """The covariance of all images."""

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "RelativeMahalanobis":
        """Estimate the means and both covariances of the standardised features, see :meth:`Detector.fit`."""
        return cls.estimate(known.images.features, known.labels)

    @classmethod
    def estimate(
        cls, features: Float[Tensor, "count features"], labels: Int[Tensor, " count"]
    ) -> "RelativeMahalanobis":
        """Estimate the means and both covariances.

        Args:
            features: Features of training images.
            labels: Their labels.

        Returns:
            The detector.
        """
        mean = features.mean(0)
        return cls(Mahalanobis.estimate(features, labels), mean, ShrunkCovariance.estimate(features - mean))

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the difference of the two squared distances of each image, see :meth:`Detector.scores`."""
        return self.differences(images.features)

    def differences(self, features: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """Return the squared distance from the nearest class minus that from the mean of all images.

        Args:
            features: Features of images.

        Returns:
            One number per image.
        """
        return self.classes.squared_distances(features) - self.total.squared_distances(features, self.mean[None])[:, 0]
