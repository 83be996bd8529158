"""Where maps are standardised by a kernel of our own, and where by PyTorch."""

import torch

from tigranet.kernels import standardised
from tigranet.kernels.cuda_standardise import NODES, _images


def test_on_a_cpu_it_is_left_to_pytorch():
    assert standardised(torch.rand(2, 3, 20), 1e-5) is None


def test_a_block_sums_up_some_small_maps_or_one_large_one():
    assert _images(676) == NODES // 676
    assert _images(100 * NODES) == 1
