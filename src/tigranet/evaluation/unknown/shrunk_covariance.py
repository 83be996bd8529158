"""A covariance matrix that is estimated from few images and stored in little memory."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

MAX_DIRECTIONS = 256
"""Largest number of directions whose variances are kept one by one. All other directions share one variance."""
MAX_NUMBERS = 2**18
"""Largest number of elements of all directions together, for networks with many features."""
SMALLEST_VARIANCE = 1e-6
"""Smallest variance, as a fraction of the mean variance of all directions."""


def ledoit_wolf_shrinkage(deviations: Float[Tensor, "count features"]) -> float:
    r"""Return how far to shrink a covariance matrix that is estimated from few images.

    With the sample covariance :math:`S = \frac1n \sum_i x_i x_i^T` of deviations x and the mean variance
    :math:`\mu = \mathrm{tr}(S) / p` of p features, the estimate :math:`(1 - \rho) S + \rho \mu I` with

    .. math:: \rho = \min\Big(1, \frac{\frac1{n^2} \sum_i \|x_i x_i^T - S\|^2}{\|S - \mu I\|^2}\Big)

    minimises the expected squared error asymptotically (Ledoit & Wolf, "A well-conditioned estimator for
    large-dimensional covariance matrices", 2004).

    Args:
        deviations: The deviations x of n images from their means.

    Returns:
        The shrinkage :math:`\rho`; 1 if all features have the same variance and are uncorrelated.

    Example:
        >>> ledoit_wolf_shrinkage(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
        1.0
    """
    count, features = deviations.shape
    products = deviations @ deviations.T if count < features else deviations.T @ deviations
    squared_norm = (products / count).square().sum()  # of S, which has the same one as the matrix of inner products
    spread = squared_norm - deviations.square().sum().div(count).square() / features
    error = (deviations.square().sum(1).square().mean() - squared_norm) / count
    return 1.0 if spread <= 1e-12 * squared_norm else float((error / spread).clamp(0, 1))


@dataclass(frozen=True)
class ShrunkCovariance:
    r"""A covariance matrix :math:`\Sigma = \sum_i \lambda_i v_i v_i^T + \lambda (I - \sum_i v_i v_i^T)`.

    The directions :math:`v_i` are the eigenvectors of the largest eigenvalues of the estimate of Ledoit & Wolf, see
    :func:`ledoit_wolf_shrinkage`, and :math:`\lambda` is the mean of its other eigenvalues. For at most
    :data:`MAX_DIRECTIONS` images this is exactly their estimate, because the other eigenvalues are equal.

    Args:
        directions: The eigenvectors v, as rows.
        variances: Their eigenvalues.
        other_variance: The variance :math:`\lambda` in all other directions.

    Example:
        >>> deviations = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]).double()
        >>> distances = ShrunkCovariance.estimate(deviations).squared_distances(torch.eye(2), torch.zeros(1, 2))
        >>> bool(distances[0] > distances[1])  # 1 is less unusual along the second axis
        True
    """

    directions: Float[Tensor, "kept features"]
    variances: Float[Tensor, " kept"]
    other_variance: Float[Tensor, ""]

    @classmethod
    def estimate(
        cls, deviations: Float[Tensor, "count features"], max_directions: int = MAX_DIRECTIONS
    ) -> "ShrunkCovariance":
        """Estimate a covariance matrix.

        Args:
            deviations: Deviations of images from their means.
            max_directions: Largest number of directions.

        Returns:
            The matrix.
        """
        deviations = deviations.double()
        count, features = deviations.shape
        kept = min(max_directions, max(1, MAX_NUMBERS // features), features, count)
        _, singular_values, vectors = torch.linalg.svd(deviations, full_matrices=False)
        variances = singular_values.square() / count
        mean_variance = variances.sum() / features
        smallest = max(float(mean_variance) * SMALLEST_VARIANCE, SMALLEST_VARIANCE**2)
        shrinkage = ledoit_wolf_shrinkage(deviations)
        shrunk = ((1 - shrinkage) * variances + shrinkage * mean_variance).clamp(min=smallest)
        others = (1 - shrinkage) * variances[kept:].sum() / max(features - kept, 1) + shrinkage * mean_variance
        return cls(vectors[:kept].contiguous(), shrunk[:kept], others.clamp(min=smallest))

    def squared_distances(
        self, features: Float[Tensor, "count features"], centres: Float[Tensor, "centres features"]
    ) -> Float[Tensor, "count centres"]:
        r"""Return :math:`(x - c)^T \Sigma^{-1} (x - c)` for all features x and all centres c.

        Args:
            features: The features x of images.
            centres: The centres c.

        Returns:
            The squared distances, in double precision.
        """
        # Without matrix products, which lose digits where distances are small.
        mode = "donot_use_mm_for_euclid_dist"
        return torch.cdist(self.whiten(features), self.whiten(centres), compute_mode=mode).square()

    def whiten(self, features: Float[Tensor, "count features"]) -> Float[Tensor, "count coordinates"]:
        r"""Map features to coordinates in which :math:`\Sigma` is the identity.

        The coordinates are those along the directions, followed by the features without them,

        .. math:: x \mapsto \big(v_i^T x / \sqrt{\lambda_i},\; (x - \textstyle\sum_i v_i v_i^T x) / \sqrt\lambda\big) .

        Args:
            features: The features x.

        Returns:
            The coordinates, in double precision.
        """
        projected = features.double() @ self.directions.T
        rest = features - projected @ self.directions
        return torch.cat([projected / self.variances.sqrt(), rest / self.other_variance.sqrt()], dim=1)

    def whiten_transposed(self, vectors: Float[Tensor, "count coordinates"]) -> Float[Tensor, "count features"]:
        """Turn functions of the coordinates into functions of the features: the transposed map of :meth:`whiten`.

        Args:
            vectors: Each row u stands for the function ``whiten(x) @ u``.

        Returns:
            Rows w with ``x @ w`` equal to ``whiten(x) @ u``.
        """
        along, rest = vectors[:, : len(self.variances)], vectors[:, len(self.variances) :]
        rest = rest - rest @ self.directions.T @ self.directions
        return along / self.variances.sqrt() @ self.directions + rest / self.other_variance.sqrt()


def class_means(
    features: Float[Tensor, "count features"], labels: Int[Tensor, " count"]
) -> tuple[Float[Tensor, "classes features"], Float[Tensor, "count features"]]:
    """Return the mean of each class that has images, and the deviation of each image from that of its class.

    Args:
        features: The features of images.
        labels: Their labels.

    Returns:
        The means, in the order of the labels, and the deviations. A single image of a class has the deviation 0.
    """
    _, positions = labels.unique(return_inverse=True)
    means = torch.stack([features[positions == position].mean(0) for position in range(int(positions.max()) + 1)])
    return means, features - means[positions]
