"""Where maps are standardised by a kernel of our own, and where by PyTorch."""

import torch

from tigranet.kernels import standardised
from tigranet.kernels.cuda_standardise import pack_size


def test_on_a_cpu_it_is_left_to_pytorch():
    assert standardised(torch.rand(2, 3, 20), 1e-5) is None


def test_maps_are_read_in_packs_where_they_begin_at_whole_ones():
    z = torch.rand(8 * 676 + 4)
    assert pack_size(z[4:].view(2, 4, 676), z[:-4].view(2, 4, 676)) == 4
    assert pack_size(z[1:-3].view(2, 4, 676)) == pack_size(z[:30].view(2, 3, 5)) == 1
