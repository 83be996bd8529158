"""Standardised statistics: the one thing that makes the paper's classifier train well."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Standardise(nn.Module):
    r"""Each statistic, less its mean, over its standard deviation, both learned from the batches seen:

    .. math:: \phi \mapsto (\phi - \mathrm{E}\,\phi) / \sqrt{\mathrm{Var}\,\phi + \epsilon}.

    The statistics span orders of magnitude, so a linear layer reads a few of them and is deaf to the rest.
    This is not in the paper; it has no learned parameters, only running estimates. In training mode it
    uses the batch's own moments, in evaluation, or for a batch of one, the running ones.

    Shapes: (batch, statistics) -> (batch, statistics).
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, num_statistics: int, momentum: float = 0.1, eps: float = 1e-10) -> None:
        super().__init__()
        self.num_statistics, self.momentum, self.eps = num_statistics, momentum, eps
        self.register_buffer("mean", torch.zeros(num_statistics))
        self.register_buffer("variance", torch.ones(num_statistics))

    def forward(self, phi: Float[Tensor, "batch statistics"]) -> Float[Tensor, "batch statistics"]:
        training = self.training and phi.shape[0] > 1
        return F.batch_norm(phi, self.mean, self.variance, training=training, momentum=self.momentum, eps=self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_statistics}"
