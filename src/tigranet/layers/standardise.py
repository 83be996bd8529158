"""Standardised statistics: what makes the paper's classifier train well."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.distributed import gathered


class Standardise(nn.Module):
    r"""Each statistic, less its mean, over its standard deviation, both estimated from the batches seen:

    .. math:: \phi \mapsto (\phi - \mathrm{E}\,\phi) / \sqrt{\mathrm{Var}\,\phi + \epsilon}.

    The statistics span orders of magnitude, so a linear layer reads a few of them and is deaf to the rest.
    This is not in the paper; it has no learned parameters, only running estimates. In training mode it
    uses the batch's own moments; in evaluation, or for a batch of one, the running ones.

    It is batch normalisation but for two things. The estimates are the plain average of all batches at
    first, and forget with rate ``momentum`` later on, so that they are right from the first batch. And
    :math:`\epsilon` is small, because small variances are ordinary here.

    Shapes: (batch, statistics) -> (batch, statistics).
    """

    mean: Float[Tensor, " statistics"]
    variance: Float[Tensor, " statistics"]
    batches: Int[Tensor, ""]

    def __init__(self, num_statistics: int, momentum: float = 0.1, eps: float = 1e-10) -> None:
        super().__init__()
        self.num_statistics, self.momentum, self.eps = num_statistics, momentum, eps
        self.register_buffer("mean", torch.zeros(num_statistics))
        self.register_buffer("variance", torch.ones(num_statistics))
        self.register_buffer("batches", torch.tensor(0))

    def forward(self, phi: Float[Tensor, "batch statistics"]) -> Float[Tensor, "batch statistics"]:
        mean, variance = self.mean, self.variance
        if self.training and len(batch := gathered(phi)) > 1:  # the whole batch, though it be spread over processes
            variance, mean = torch.var_mean(batch, dim=0, correction=0)
            with torch.no_grad():
                self.batches += 1
                rate = (1 / self.batches).clamp(min=self.momentum).to(phi.dtype)
                self.mean.lerp_(mean, rate)
                self.variance.lerp_(variance, rate)
        return (phi - mean) * (variance + self.eps).rsqrt()

    def extra_repr(self) -> str:
        return f"{self.num_statistics}"
