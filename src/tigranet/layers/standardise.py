"""Standardised statistics and maps: what makes the classifier, and deep networks, train well."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.distributed import alone, moments
from tigranet.kernels import standardised


class Standardise(nn.Module):
    r"""Each statistic, or each map over its nodes, less its mean, over its standard deviation, both estimated from the
    batches seen:

    .. math:: \phi \mapsto (\phi - \mathrm{E}\,\phi) / \sqrt{\mathrm{Var}\,\phi + \epsilon}.

    The statistics span orders of magnitude, so a linear layer reads a few of them and is deaf to the rest.
    This is not in the paper; it has no learned parameters, only running estimates. In training mode it
    uses the batch's own moments; in evaluation, or for a batch of one number, the running ones.

    It is batch normalisation but for two things. The estimates are the plain average of all batches at
    first, and forget with rate ``momentum`` later on, so that they are right from the first batch. And
    :math:`\epsilon` is small unless told, because small variances are ordinary among statistics.

    Shapes: (batch, statistics) or (batch, maps, nodes) -> the same.
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

    def forward(self, phi: Float[Tensor, "batch statistics *nodes"]) -> Float[Tensor, "batch statistics *nodes"]:
        count = phi.numel() // self.num_statistics
        if phi.ndim == 3 and (not self.training or (alone() and count > 1)):
            return self._in_one_pass(phi, count)
        mean, variance = self.mean, self.variance
        if self.training:
            own_variance, own_mean, count = moments(phi)  # of the whole batch, though it be spread over processes
            if count > 1:
                variance, mean = own_variance, own_mean
                self._learn(mean, variance)
        each = (-1, *[1] * (phi.ndim - 2))  # one number a map, for all its nodes
        return (phi - mean.reshape(each)) * (variance + self.eps).rsqrt().reshape(each)

    def _in_one_pass(self, z: Float[Tensor, "batch maps nodes"], count: int) -> Float[Tensor, "batch maps nodes"]:
        """The same, with one operation to go over the maps, which are large."""
        if not self.training:
            return F.batch_norm(z, self.mean, self.variance, eps=self.eps)
        if (fused := standardised(z, self.eps)) is not None:
            answer, mean, variance = fused
        else:
            mean, variance = torch.zeros_like(self.mean), torch.zeros_like(self.variance)
            answer = F.batch_norm(z, mean, variance, training=True, momentum=1.0, eps=self.eps)  # it fills them
            variance = variance * ((count - 1) / count)
        self._learn(mean, variance)
        return answer

    def _learn(self, mean: Float[Tensor, " statistics"], variance: Float[Tensor, " statistics"]) -> None:
        with torch.no_grad():
            self.batches += 1
            rate = (1 / self.batches).clamp(min=self.momentum).to(mean.dtype)
            self.mean.lerp_(mean, rate)
            self.variance.lerp_(variance, rate)

    def extra_repr(self) -> str:
        return f"{self.num_statistics}"
