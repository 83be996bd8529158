"""Unknown images by how far they are from every class, and by how weakly any class is recognised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.evaluation.unknown.detector import Detector
from tigranet.evaluation.unknown.discriminants import fisher_discriminants
from tigranet.evaluation.unknown.log_moments import LogMoments
from tigranet.evaluation.unknown.mahalanobis import Mahalanobis
from tigranet.evaluation.unknown.representation import KnownImages, Representation
from tigranet.evaluation.unknown.shrunk_covariance import ShrunkCovariance
from tigranet.evaluation.unknown.softmax_probability import SoftmaxProbability

MAX_SURPRISE = 5.0
"""Largest contribution of the probability, in standard deviations, so that it cannot outweigh a large distance."""
SMALLEST_DEVIATION = 1e-6
"""Smallest divisor of a score, for validation images that all have the same one."""


@dataclass(frozen=True)
class DistanceAndProbability(Detector):
    r"""The sum of two distances and the probability, each in standard deviations of known images.

    .. math:: s(x) = \frac{d(x) - \bar d}{\sigma_d} + \frac{f(x) - \bar f}{\sigma_f}
              + \mathrm{clip}\Big(\frac{p(x) - \bar p}{\sigma_p}, -5, 5\Big)

    with

    * the squared Mahalanobis distance d from the nearest class (Lee et al. 2018), of the features on logarithmic
      scales, see :class:`LogMoments`;
    * the same distance f in the directions in which the classes differ, see :func:`fisher_discriminants`. Like the
      relative Mahalanobis distance (Ren et al. 2021), it ignores directions that do not tell classes apart, but it
      cannot become small far from all images;
    * minus the logarithm p of the probability of the most probable class (Hendrycks & Gimpel 2017);

    and the means and standard deviations of all three over validation images. The distances find noise and images of
    other kinds, about which the logits are often confident. The second distance and the probability find images of
    unseen classes that resemble the known ones. The energy of the logits in place of the probability is better for some
    networks, and much worse for others, which give images of an unseen class larger logits than known images.
    """

    moments: LogMoments
    """The scales of the features."""
    distance: Mahalanobis
    """The distance in all directions, on these scales."""
    discriminants: Float[Tensor, "directions features"]
    """The directions in which the classes differ."""
    centres: Float[Tensor, "3"]
    """The means of the three scores over validation images."""
    deviations: Float[Tensor, "3"]
    """Their standard deviations."""

    @classmethod
    def fit(cls, known: KnownImages, validation: Representation) -> "DistanceAndProbability":
        """Estimate distances from training images and scales from validation images, see :meth:`Detector.fit`."""
        return cls.estimate(known).scaled(validation)

    @classmethod
    def estimate(cls, known: KnownImages) -> "DistanceAndProbability":
        """Estimate the distances from training images.

        Args:
            known: The training images.

        Returns:
            The detector with all scores as they are, to be followed by :meth:`scaled`.
        """
        moments = LogMoments.fit(known.images.statistics)
        distance = Mahalanobis.estimate(moments(known.images.statistics), known.labels)
        counts = known.labels.unique(return_counts=True)[1]
        discriminants = fisher_discriminants(distance.means, counts, distance.within)
        return cls(moments, distance, discriminants, torch.zeros(3).double(), torch.ones(3).double())

    def scaled(self, validation: Representation) -> "DistanceAndProbability":
        """Measure how much the three scores vary.

        Args:
            validation: At least one image of a known class that the network was not trained on.

        Returns:
            The same detector with the means and standard deviations of these images.
        """
        scores = self._components(validation)
        deviations = scores.std(1, correction=0).clamp(min=SMALLEST_DEVIATION)
        return replace(self, centres=scores.mean(1), deviations=deviations)

    def rounded(self) -> "DistanceAndProbability":
        """Round all numbers to single precision, so that a stored detector gives the same scores.

        Returns:
            The same detector, with rounded numbers in double precision.
        """
        return self.from_tensors(self.to_tensors())

    def to_tensors(self) -> dict[str, Tensor]:
        """Return the numbers of the detector, to store them.

        Returns:
            Tensors in single precision by name.
        """
        within = self.distance.within
        tensors = {
            "mean_variances": self.moments.mean_variances,
            "feature_centres": self.moments.centres,
            "feature_factors": self.moments.factors,
            "class_means": self.distance.means,
            "directions": within.directions,
            "variances": within.variances,
            "other_variance": within.other_variance,
            "discriminants": self.discriminants,
            "score_centres": self.centres,
            "score_deviations": self.deviations,
        }
        return {name: tensor.float().contiguous() for name, tensor in tensors.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "DistanceAndProbability":
        """Create a detector from stored numbers.

        Args:
            tensors: The tensors of :meth:`to_tensors`.

        Returns:
            The detector.
        """
        number = {name: tensor.double() for name, tensor in tensors.items()}
        moments = LogMoments(number["mean_variances"], number["feature_centres"], number["feature_factors"])
        within = ShrunkCovariance(number["directions"], number["variances"], number["other_variance"])
        distance = Mahalanobis(number["class_means"], within)
        return cls(moments, distance, number["discriminants"], number["score_centres"], number["score_deviations"])

    def scores(self, images: Representation) -> Float[Tensor, " count"]:
        """Return the sum of the three scores of each image, in standard deviations, see :meth:`Detector.scores`."""
        distance, discriminant_distance, surprise = (
            self._components(images) - self.centres[:, None]
        ) / self.deviations[:, None]
        return distance + discriminant_distance + surprise.clamp(-MAX_SURPRISE, MAX_SURPRISE)

    def _components(self, images: Representation) -> Tensor:
        features = self.moments(images.statistics)
        projected, centres = (rows @ self.discriminants.T for rows in (features, self.distance.means))
        discriminant_distances = torch.cdist(projected, centres, compute_mode="donot_use_mm_for_euclid_dist")
        return torch.stack(
            [
                self.distance.squared_distances(features),
                discriminant_distances.square().amin(1),
                SoftmaxProbability().scores(images),
            ]
        )
