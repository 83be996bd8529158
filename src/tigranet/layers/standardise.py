"""Standardised statistics and maps: what makes the classifier, and deep networks, train well."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.distributed import alone, moments
from tigranet.ops import settled, standardised


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
        if phi.ndim not in (2, 3) or phi.shape[1] != self.num_statistics:
            raise ValueError(f"{self!r} reads (batch, {self.num_statistics}) or maps, got shape {tuple(phi.shape)}")
        if phi.ndim == 3:
            return self._maps(phi, lambda x: x)
        mean, variance = self.mean, self.variance
        if self.training:
            own_variance, own_mean, count = moments(phi)  # of the whole batch, though it be spread over processes
            if count > 1:
                variance, mean = own_variance, own_mean
                self._learn(mean, variance)
        return (phi - mean) * (variance + self.eps).rsqrt()

    def rectified(
        self, z: Float[Tensor, "batch maps nodes"], bias: Float[Tensor, "maps 1"]
    ) -> Float[Tensor, "batch maps nodes"]:
        """ReLU of the standardised maps and a bias each."""
        return self._maps(z, lambda x: torch.relu(x + bias), bias)

    def rooted(
        self, z: Float[Tensor, "batch maps nodes"], large: int, behind: Float[Tensor, "batch others nodes"]
    ) -> Float[Tensor, "batch joined nodes"]:
        r"""The standardised maps x, and beyond ``large`` standard deviations about their root,
        :math:`x / \sqrt{1 + |x| / \mathrm{large}}`; set behind other maps."""

        def then(x: Tensor) -> Tensor:
            return torch.cat((behind, x * (1 + x.abs() / large).rsqrt()), dim=1)

        return self._maps(z, then, large=large, behind=behind)

    def _maps(
        self,
        z: Float[Tensor, "batch maps nodes"],
        then: Callable[[Tensor], Tensor],
        bias: Tensor | None = None,
        large: int = 0,
        behind: Tensor | None = None,
    ) -> Float[Tensor, "batch _ nodes"]:
        """Standardised maps, and ``then``, which a fused version is told of by what else comes. They are large: the
        plain version is PyTorch's batch normalisation, which goes over them in one operation."""
        count = z.numel() // self.num_statistics
        if self.training and not alone():
            variance, mean, count = moments(z)
            if count > 1:
                self._learn(mean, variance)
                return then((z - mean[:, None]) * (variance + self.eps).rsqrt()[:, None])
        elif self.training and count > 1:
            if (fused := standardised(z, self.eps, bias, large, behind)) is not None:
                self._learn(*fused[1:])
                return fused[0]
            mean, variance = torch.zeros_like(self.mean), torch.zeros_like(self.variance)
            answer = F.batch_norm(z, mean, variance, training=True, momentum=1.0, eps=self.eps)  # it fills them
            self._learn(mean, variance * ((count - 1) / count))
            return then(answer)
        if (known := settled(z, self.mean, self.variance, self.eps, bias, large, behind)) is not None:
            return known
        return then(F.batch_norm(z, self.mean, self.variance, eps=self.eps))

    def _learn(self, mean: Float[Tensor, " statistics"], variance: Float[Tensor, " statistics"]) -> None:
        with torch.no_grad():
            self.batches += 1
            rate = (1 / self.batches).clamp(min=self.momentum).to(mean.dtype)
            self.mean.lerp_(mean, rate)
            self.variance.lerp_(variance, rate)

    def extra_repr(self) -> str:
        return f"{self.num_statistics}"
