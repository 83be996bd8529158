"""Batch normalisation of features with orientations."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tigranet.distributed import is_single_process, moments
from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.standardise import Standardise
from tigranet.ops import orientation_norm, orientation_norm_eval
from tigranet.ops.grid_spec import GridSpec
from tigranet.ops.orientation_norm import from_columns, pad_maps, to_columns


class OrientationNorm(Standardise):
    r"""Batch normalisation with the same moments for all orientations of a feature, followed by ReLU.

    .. math:: z = \mathrm{ReLU}\bigl(g_c\, (y - \mathrm{E}\,y_c) / \sqrt{\mathrm{Var}\,y_c + \epsilon} + b_c\bigr)

    Mean and variance are over the batch, the nodes and the orientations of feature c, so that a rotation of the image,
    which permutes the orientations, changes nothing. The running estimates are those of :class:`Standardise`.

    Args:
        features: Number of features.
        orientations: Number of orientations.

    Shape:
        (batch, orientations * features, nodes) -> the same, or with a border (batch, maps, nodes of the padded image).

    Example:
        >>> OrientationNorm(3, orientations=4)(torch.randn(2, 12, 20)).shape
        torch.Size([2, 12, 20])
    """

    def __init__(self, features: int, orientations: int) -> None:
        super().__init__(features, eps=1e-5)
        self.orientations = orientations
        self.scale = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(
        self, y: Float[Tensor, "batch maps nodes"], laplacian: GridLaplacian | None = None, border: int = 0
    ) -> Float[Tensor, "batch maps padded_nodes"]:
        """Normalise features and apply ReLU, and add a border to the images for a convolution that follows.

        Args:
            y: Features.
            laplacian: The grid of the features. It is only needed with a border.
            border: Number of pixels to add on each side, see :meth:`GridLaplacian.pad`.

        Returns:
            The normalised and rectified features, on the padded images.

        Raises:
            ValueError: If ``y`` does not have one map per feature and orientation, or if there is a border and no grid.
        """
        if y.ndim != 3 or y.shape[1] != self.orientations * self.num_statistics:
            raise ValueError(
                f"{self!r} reads maps (batch, {self.orientations * self.num_statistics}, nodes), "
                f"got shape {tuple(y.shape)}"
            )
        if laplacian is None and border > 0:
            raise ValueError(f"expected the grid of the features with a border of {border} pixels, got None")
        grid = GridSpec(1, y.shape[2], 8, False, 1.0) if laplacian is None else GridSpec.of(laplacian)
        return self._normalise(y, border, grid).flatten(2)

    def _normalise(
        self, y: Float[Tensor, "batch maps nodes"], border: int, grid: GridSpec
    ) -> Float[Tensor, "batch maps padded_height padded_width"]:
        if self.training and is_single_process() and y.numel() // self.num_statistics > 1:
            z, mean, variance = orientation_norm(y, self.scale, self.bias, self.eps, border, grid)
            self._update_estimates(mean, variance)
            return z
        if self.training and not is_single_process():
            columns = to_columns(y, self.num_statistics)
            batch_variance, batch_mean, count = moments(columns)
            if count > 1:
                self._update_estimates(batch_mean, batch_variance)
                gain = self.scale * (batch_variance + self.eps).rsqrt()
                x = columns * gain[:, None, None] + (self.bias - batch_mean * gain)[:, None, None]
                return pad_maps(from_columns(F.relu(x)), border, grid)
        return orientation_norm_eval(y, self.mean, self.variance, self.scale, self.bias, self.eps, border, grid)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.num_statistics}, orientations={self.orientations}"
