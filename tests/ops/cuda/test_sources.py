from importlib import resources

import pytest

from tigranet.ops.cuda.sources import read_source

NAMES = sorted(
    path.name.removesuffix(".cu")
    for path in resources.files("tigranet.ops.cuda").iterdir()
    if path.name.endswith(".cu")
)
KERNELS = [
    "chebyshev",
    "coarsening",
    "convolution",
    "orientation_norm",
    "oriented_products",
    "pooling",
    "standardise",
    "statistics",
    "streamed",
]
SHARED = ["block_sum", "common", "pixel_packs", "strips"]


def test_there_is_one_source_per_operation_and_some_that_they_share():
    assert sorted(KERNELS + SHARED) == NAMES


@pytest.mark.parametrize("name", KERNELS)
def test_included_files_are_part_of_the_text(name):
    text = read_source(name)
    assert "#include" not in text
    assert text.count("T warp_sum(T x)") == 1
    assert text.count("__global__") >= 1
    assert ("struct Window" in text) == (name in ("chebyshev", "oriented_products"))


@pytest.mark.parametrize("name", NAMES)
def test_lines_fit_the_page(name):
    assert max(map(len, read_source(name).splitlines())) <= 120
