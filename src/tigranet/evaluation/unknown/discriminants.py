"""The directions in which known classes differ."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tigranet.evaluation.unknown.shrunk_covariance import MAX_DIRECTIONS, MAX_NUMBERS, ShrunkCovariance


def fisher_discriminants(
    means: Float[Tensor, "classes features"], counts: Int[Tensor, " classes"], within: ShrunkCovariance
) -> Float[Tensor, "directions features"]:
    r"""Return Fisher's linear discriminants, on which distances are Mahalanobis distances.

    They are the eigenvectors u of

    .. math:: \Sigma^{-1/2} B\, \Sigma^{-1/2}, \qquad B = \sum_c \frac{n_c}{n} (\mu_c - \mu)(\mu_c - \mu)^T

    for positive eigenvalues, of which there are fewer than classes, as functions
    :math:`\phi \mapsto u^T \Sigma^{-1/2} \phi` of the features. Fisher, "The use of multiple measurements in taxonomic
    problems" (1936).

    Args:
        means: The means :math:`\mu_c` of the classes.
        counts: The numbers of images :math:`n_c`.
        within: The covariance :math:`\Sigma` within classes.

    Returns:
        One row per direction, those of the largest eigenvalues first.
    """
    weights = counts.double() / counts.sum()
    centred = means.double() - weights @ means.double()
    whitened = within.whiten(centred) * weights.sqrt()[:, None]
    _, _, vectors = torch.linalg.svd(whitened, full_matrices=False)
    kept = min(len(means) - 1, MAX_DIRECTIONS, max(1, MAX_NUMBERS // means.shape[1]), len(vectors))
    return within.whiten_transposed(vectors[:kept])
