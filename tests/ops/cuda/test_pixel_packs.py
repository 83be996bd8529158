"""How pixels are divided among blocks: all of them, once, within the limits of CUDA."""

import pytest
import torch

from tigranet.ops.cuda.pixel_packs import MAX_PIXELS, THREADS, PixelBlocks, as_pixels, pack_size
from tigranet.ops.fallback import KernelUnavailableError


@pytest.mark.parametrize("packs", [1, 3, 12, 48, 128, 255, 256, 257, 1000, 10**6])
@pytest.mark.parametrize("pixels", [1, 7, 4000, 256_000, 1_605_632, MAX_PIXELS])
@pytest.mark.parametrize(("least", "most", "blocks"), [(4, 2**20, 1024), (1, 16, 2048)])
def test_every_pack_of_every_pixel_belongs_to_one_block(pixels, packs, least, most, blocks):
    plan = PixelBlocks.plan(pixels, packs, least, most, blocks)
    assert plan.columns * plan.rows <= THREADS
    assert plan.columns * (plan.chunks - 1) < packs <= plan.columns * plan.chunks
    assert plan.pixels_per_block * (plan.num_blocks - 1) < pixels <= plan.pixels_per_block * plan.num_blocks
    assert least <= plan.pixels_per_block // plan.rows <= most
    assert plan.num_blocks <= blocks or plan.pixels_per_block == most * plan.rows
    assert plan.num_blocks * plan.pixels_per_block < 2**31
    assert plan.chunks <= 65_535


def test_more_pixels_than_the_kernels_can_count_are_an_error_that_names_the_limit():
    with pytest.raises(KernelUnavailableError, match=f"{MAX_PIXELS}.*{MAX_PIXELS + 1}"):
        PixelBlocks.plan(MAX_PIXELS + 1, 12, 1, 16, 2048)


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float64, 2), (torch.float32, 4), (torch.bfloat16, 8), (torch.float16, 8)]
)
def test_packs_have_sixteen_bytes_where_every_pixel_is_aligned(dtype, size):
    images = torch.zeros(2, 5, 16, dtype=dtype)
    assert pack_size(16, images, images) == size
    assert pack_size(15, images) == 1
    assert pack_size(16, images, images.flatten()[1:]) == 1


def test_maps_that_are_stored_pixel_by_pixel_are_not_copied():
    pixels = torch.rand(2, 5, 8)
    assert as_pixels(pixels.transpose(1, 2)).data_ptr() == pixels.data_ptr()
    maps = torch.rand(2, 8, 5)
    assert as_pixels(maps).is_contiguous()
    assert torch.equal(as_pixels(maps), maps.transpose(1, 2))
