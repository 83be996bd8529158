"""The plain operations fused, for CPU and GPU. Each is compared with the plain version, which is the truth.

A layer's ``forward`` is the plain version; the decorators here run a fused operator instead where one fits, and the
plain version everywhere else (see :mod:`tigranet.ops.dispatch`). ``TIGRANET_KERNELS=plain`` or ``fused`` forces one.
"""

from tigranet.ops import cuda as _registered_for_cuda  # noqa: F401
from tigranet.ops import cuda_oriented as _registered_too  # noqa: F401
from tigranet.ops.chebyshev import fused_chebyshev, fused_chebyshev_sum
from tigranet.ops.convolution import fused_convolution
from tigranet.ops.dispatch import using
from tigranet.ops.mixing import fused_mixed
from tigranet.ops.oriented_products import fused_products
from tigranet.ops.pooling import fused_pooling
from tigranet.ops.standardise import standardised
from tigranet.ops.standardise_eval import settled
from tigranet.ops.statistics import fused_statistics

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
