"""Standardised statistics and maps, with which the classifier and deep networks train well."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tigranet.distributed import is_single_process, moments
from tigranet.ops import standardise, standardise_eval
from tigranet.ops.standardise import transform


class Standardise(nn.Module):
    r"""Subtract the mean of each statistic, or of each map over its nodes, and divide by its standard deviation.

    .. math:: \phi \mapsto (\phi - \mathrm{E}\,\phi) / \sqrt{\mathrm{Var}\,\phi + \epsilon}

    Both are estimated from the training batches. The statistics span orders of magnitude; without this layer a linear
    layer reads a few of them and ignores the rest. This is not in the paper. The layer has no learned parameters, only
    running estimates. In training mode it uses the moments of the batch; in evaluation mode, or for a batch of one
    number, the running estimates.

    It differs from batch normalisation in two points. The estimates are the plain average of all batches at first, and
    forget with rate ``momentum`` later, so that they are right from the first batch on. And the default
    :math:`\epsilon` is small, because small variances are normal among statistics.

    Args:
        num_statistics: The number of statistics, or of maps.
        momentum: The smallest weight of a batch in the running estimates.
        eps: The number :math:`\epsilon` added to the variance.

    Shape:
        (batch, statistics) or (batch, maps, nodes) -> the same.

    Example:
        >>> Standardise(3)(torch.rand(50, 3)).shape
        torch.Size([50, 3])
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
        """Standardise statistics or maps.

        Args:
            phi: Statistics, or maps.

        Returns:
            The standardised numbers.

        Raises:
            ValueError: If ``phi`` is neither (batch, num_statistics) nor (batch, num_statistics, nodes).
        """
        if phi.ndim not in (2, 3) or phi.shape[1] != self.num_statistics:
            raise ValueError(f"{self!r} reads (batch, {self.num_statistics}) or maps, got shape {tuple(phi.shape)}")
        if phi.ndim == 3:
            return self._standardise_maps(phi)
        mean, variance = self.mean, self.variance
        if self.training:
            batch_variance, batch_mean, count = moments(phi)  # of the whole batch, over all processes
            if count > 1:
                variance, mean = batch_variance, batch_mean
                self._update_estimates(mean, variance)
        return (phi - mean) * (variance + self.eps).rsqrt()

    def rectified(
        self, z: Float[Tensor, "batch maps nodes"], bias: Float[Tensor, "maps 1"]
    ) -> Float[Tensor, "batch maps nodes"]:
        """Standardise maps, add a bias and apply ReLU.

        Args:
            z: Maps.
            bias: One number per map.

        Returns:
            ReLU(x + bias), where x are the standardised maps.
        """
        return self._standardise_maps(z, bias=bias)

    def compressed(
        self, z: Float[Tensor, "batch maps nodes"], large: int, after: Float[Tensor, "batch others nodes"]
    ) -> Float[Tensor, "batch joined nodes"]:
        r"""Standardise maps, compress large values, and append the result to other maps.

        Args:
            z: Maps.
            large: The number of standard deviations beyond which values grow like a square root.
            after: The other maps.

        Returns:
            The other maps, followed by :math:`x / \sqrt{1 + |x| / \mathrm{large}}`, where x are the standardised maps.
        """
        return self._standardise_maps(z, large=large, after=after)

    def _standardise_maps(
        self,
        z: Float[Tensor, "batch maps nodes"],
        bias: Tensor | None = None,
        large: int = 0,
        after: Tensor | None = None,
    ) -> Float[Tensor, "batch _ nodes"]:
        """Standardise maps and apply :func:`transform`, in one operation, because maps are large."""
        count = z.numel() // self.num_statistics
        if self.training and not is_single_process():
            variance, mean, count = moments(z)
            if count > 1:
                self._update_estimates(mean, variance)
                return transform((z - mean[:, None]) * (variance + self.eps).rsqrt()[:, None], bias, after, large)
        elif self.training and count > 1:
            out, mean, variance = standardise(z, bias, after, self.eps, large)
            self._update_estimates(mean, variance)
            return out
        return standardise_eval(z, self.mean, self.variance, self.eps, bias, large, after)

    def _update_estimates(self, mean: Float[Tensor, " statistics"], variance: Float[Tensor, " statistics"]) -> None:
        with torch.no_grad():
            self.batches += 1
            rate = (1 / self.batches).clamp(min=self.momentum).to(self.mean.dtype)
            self.mean.lerp_(mean.to(self.mean.dtype), rate)
            self.variance.lerp_(variance.to(self.mean.dtype), rate)

    def extra_repr(self) -> str:
        """Describe the layer."""
        return f"{self.num_statistics}"
