"""The plain operations fused, for CPU and GPU. Each is compared with the plain version, which is the truth.

A layer's ``forward`` is the plain version; the decorators here run a fused operator instead where one fits, and the
plain version everywhere else (see :mod:`tigranet.kernels.choice`). ``TIGRANET_KERNELS=plain`` or ``fused`` forces one.
"""

from tigranet.kernels import cuda as _registered_for_cuda  # noqa: F401
from tigranet.kernels import cuda_oriented as _registered_too  # noqa: F401
from tigranet.kernels.chebyshev import fused_chebyshev, fused_chebyshev_sum
from tigranet.kernels.choice import using
from tigranet.kernels.convolution import fused_convolution
from tigranet.kernels.mixed import fused_mixed
from tigranet.kernels.pooling import fused_pooling
from tigranet.kernels.products import fused_products
from tigranet.kernels.settled import settled
from tigranet.kernels.standardise import standardised
from tigranet.kernels.statistics import fused_statistics

__all__ = [
    "fused_chebyshev",
    "fused_chebyshev_sum",
    "fused_convolution",
    "fused_mixed",
    "fused_pooling",
    "fused_products",
    "fused_statistics",
    "settled",
    "standardised",
    "using",
]
