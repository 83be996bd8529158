"""Batch normalisation of features with orientations."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.distributed import is_single_process, moments
from tigranet.layers.standardise import Standardise


class OrientationNorm(Standardise):
    r"""Batch normalisation with the same moments for all orientations of a feature, followed by ReLU.

    .. math:: z = \mathrm{ReLU}\bigl(g_c\, (y - \mathrm{E}\,y_c) / \sqrt{\mathrm{Var}\,y_c + \epsilon} + b_c\bigr)

    Mean and variance are over the batch, the nodes and the orientations of feature c, so that a rotation of the image,
    which permutes the orientations, changes nothing. The running estimates are those of :class:`Standardise`.

    Args:
        features: Number of features.
        orientations: Number of orientations.

    Shape:
        (batch, orientations * features, nodes) -> the same.

    Example:
        >>> OrientationNorm(3, orientations=4)(torch.randn(2, 12, 20)).shape
        torch.Size([2, 12, 20])
    """

    def __init__(self, features: int, orientations: int) -> None:
        super().__init__(features, eps=1e-5)
        self.orientations = orientations
        self.scale = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, y: Float[Tensor, "batch maps nodes"]) -> Float[Tensor, "batch maps nodes"]:
        """Normalise features and apply ReLU.

        Args:
            y: Features.

        Returns:
            The normalised and rectified features.

        Raises:
            ValueError: If ``y`` does not have one map per feature and orientation.
        """
        features = self.num_statistics
        if y.ndim != 3 or y.shape[1] != self.orientations * features:
            raise ValueError(
                f"{self!r} reads maps (batch, {self.orientations * features}, nodes), got shape {tuple(y.shape)}"
            )
        # One column per feature. If the maps are stored pixel by pixel, neither line copies them.
        columns = y.transpose(1, 2).unflatten(2, (self.orientations, features)).permute(0, 3, 1, 2)
        z = F.relu(self._normalise(columns))
        return z.permute(0, 2, 3, 1).flatten(2).transpose(1, 2)

    def _normalise(self, y: Float[Tensor, "batch features nodes orientations"]) -> Tensor:
        if self.training and y.numel() // y.shape[1] > 1 and is_single_process():
            mean, variance = torch.zeros_like(self.mean), torch.zeros_like(self.variance)
            z = F.batch_norm(y, mean, variance, self.scale, self.bias, training=True, momentum=1.0, eps=self.eps)
            count = y.numel() // y.shape[1]
            self._update_estimates(mean, variance * ((count - 1) / count))  # batch_norm stores the unbiased variance
            return z
        if self.training and not is_single_process():
            batch_variance, batch_mean, count = moments(y)
            if count > 1:
                self._update_estimates(batch_mean, batch_variance)
                gain = self.scale * (batch_variance + self.eps).rsqrt()
                return y * gain[:, None, None] + (self.bias - batch_mean * gain)[:, None, None]
        return F.batch_norm(y, self.mean, self.variance, self.scale, self.bias, training=False, eps=self.eps)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.num_statistics}, orientations={self.orientations}"
