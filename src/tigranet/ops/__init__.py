"""The operations that the layers are made of: plain PyTorch references, with fused versions for CPU and GPU.

Each operation is in the file of its name, with its reference, its fused versions and its gradient. Fused versions run
where they fit (see :mod:`tigranet.ops.dispatch`). ``TIGRANET_KERNELS=plain`` or ``fused``, or :func:`using`, selects
one kind. Importing this package loads neither numba nor CUDA code.
"""

from tigranet.ops.chebyshev import chebyshev_basis, chebyshev_sum
from tigranet.ops.coarsening import coarsen
from tigranet.ops.convolution import convolution
from tigranet.ops.group_convolution import group_convolution
from tigranet.ops.map_products import mix
from tigranet.ops.mixing import mixed_chebyshev_sum
from tigranet.ops.mode import using
from tigranet.ops.orientation_max import orientation_max
from tigranet.ops.orientation_norm import orientation_norm
from tigranet.ops.orientation_norm_eval import orientation_norm_eval
from tigranet.ops.oriented_products import oriented_products
from tigranet.ops.pooling import pooling
from tigranet.ops.standardise import standardise
from tigranet.ops.standardise_eval import standardise_eval
from tigranet.ops.statistics import statistics

__all__ = [
    "chebyshev_basis",
    "chebyshev_sum",
    "coarsen",
    "convolution",
    "group_convolution",
    "mix",
    "mixed_chebyshev_sum",
    "orientation_max",
    "orientation_norm",
    "orientation_norm_eval",
    "oriented_products",
    "pooling",
    "standardise",
    "standardise_eval",
    "statistics",
    "using",
]
