"""Mixing Fourier coefficients gives the same as the reference, forward and backward, and is chosen where it pays."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet import GridLaplacian
from tigranet.ops import map_products, mixed_chebyshev_sum, spectral_mixing, using
from tigranet.ops.grid_spec import GridSpec

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14}


@pytest.fixture(autouse=True)
def whenever_possible(monkeypatch):
    monkeypatch.setattr(spectral_mixing, "MIN_GAIN", float("inf"))


@pytest.fixture
def calls(monkeypatch):
    """Return the list of the calls of the forward and backward functions."""
    names = []
    for name in ("forward", "backward"):
        function = getattr(spectral_mixing, name)
        monkeypatch.setattr(
            spectral_mixing, name, lambda *args, name=name, function=function: (names.append(name), function(*args))[1]
        )
    return names


def run(mode, weights, y, grid, degree, g):
    weights, y = weights.detach().requires_grad_(), y.detach().requires_grad_()
    with using(mode):
        z = mixed_chebyshev_sum(weights, y, grid, degree)
        return z.detach(), *torch.autograd.grad(z, (weights, y), g)


def assert_agree(weights, y, grid, degree, g):
    """Compare with the reference in float64, relative to the largest value of each result."""
    expected = run("plain", weights.double(), y.double(), grid, degree, g.double())
    for actual, exact in zip(run("fused", weights, y, grid, degree, g), expected, strict=True):
        assert actual.dtype == y.dtype
        assert (actual - exact).abs().max() <= TOLERANCE[y.dtype] * degree * exact.abs().max(), grid


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(3, 6), (5, 8), (4, 4), (7, 7), (9, 4), (34, 34)])
@pytest.mark.parametrize(("neighbours", "diagonal"), [(4, 1.0), (8, 1.0), (8, 0.3)])
def test_all_kinds_of_grids(size, neighbours, diagonal, dtype, calls):
    grid = GridLaplacian(*size, neighbours=neighbours, boundary="torus", diagonal=diagonal)
    y, g = torch.randn(3, 21, grid.num_nodes, dtype=dtype), torch.randn(3, 17, grid.num_nodes, dtype=dtype)
    assert_agree(torch.randn(68, 21, dtype=dtype), y, grid, 3, g)
    assert calls == ["forward", "backward"]


@pytest.mark.parametrize("degree", range(1, 7))
@pytest.mark.parametrize("batch", [1, 2, 13])
def test_all_degrees_and_batches(degree, batch, calls):
    grid = GridLaplacian(6, 7, boundary="torus", diagonal=0.3)
    y, g = torch.randn(batch, 40, 42), torch.randn(batch, 33, 42)
    assert_agree(torch.randn((degree + 1) * 33, 40), y, grid, degree, g)
    assert calls == ["forward", "backward"]


def test_many_parts_of_images_and_of_weights(calls, monkeypatch):
    monkeypatch.setattr(spectral_mixing, "MAX_SPECTRUM_BYTES", 1)
    monkeypatch.setattr(spectral_mixing, "MAX_WEIGHT_BYTES", 3 * 4 * 16 * 17)  # of three groups
    grid = GridLaplacian(6, 6, boundary="torus")
    assert_agree(torch.randn(32, 17), torch.randn(13, 17, 36), grid, 1, torch.randn(13, 16, 36))
    assert calls == ["forward", "backward"]


def test_maps_weights_and_gradients_in_other_memory_layouts(calls):
    grid = GridLaplacian(4, 5, boundary="torus")
    weights = torch.randn(3, 36, 16).transpose(1, 2).flatten(0, 1)[:, ::2]
    y, g = torch.randn(4, 20, 18).transpose(1, 2), torch.randn(4, 18, 20)[:, 1:17]
    assert_agree(weights, y, grid, 2, g)
    assert_agree(weights, y[:1].expand(4, -1, -1), grid, 2, g.sum().expand(4, 16, 20))
    assert calls == ["forward", "backward"] * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(5, 8), (34, 34), (9, 9)])
def test_shifts_and_quarter_turns_commute_with_it(size, dtype, calls):
    grid, turned = (GridLaplacian(*shape, boundary="torus", diagonal=0.3) for shape in (size, size[::-1]))
    weights, y = torch.randn(80, 24, dtype=dtype), torch.randn(4, 24, *size, dtype=dtype)

    def filtered(images, grid):
        with using("fused"):
            return mixed_chebyshev_sum(weights, images.flatten(2), grid, 4).unflatten(2, images.shape[2:])

    z = filtered(y, grid)
    tolerance = 4 * TOLERANCE[dtype] * z.abs().max().item()
    for actual, expected in (
        (filtered(y.roll((3, 2), (2, 3)), grid), z.roll((3, 2), (2, 3))),
        (filtered(y.rot90(1, (2, 3)), turned), z.rot90(1, (2, 3))),
        (filtered(y.flip(3), grid), z.flip(3)),
    ):
        torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)
    assert calls == ["forward"] * 4


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("size", "in_maps", "maps"), [((28, 28), 107, 35), ((6, 6), 67, 33), ((33, 21), 60, 35)])
def test_an_image_has_the_same_bits_in_every_batch(size, in_maps, maps, threads, calls, monkeypatch):
    threads_before = torch.get_num_threads()
    grid, weights = GridLaplacian(*size, boundary="torus", diagonal=0.3), torch.randn(4 * maps, in_maps)
    y = torch.randn(5, in_maps, grid.num_nodes)[[0, 1, 0, 2, 0, 3, 4, 0]]
    torch.set_num_threads(threads)
    try:
        with using("fused"):
            z, few = mixed_chebyshev_sum(weights, y, grid, 3), mixed_chebyshev_sum(weights, y[2:4], grid, 3)
            monkeypatch.setattr(spectral_mixing, "MAX_SPECTRUM_BYTES", 1)
            parts = mixed_chebyshev_sum(weights, y, grid, 3)
    finally:
        torch.set_num_threads(threads_before)
    assert all(torch.equal(z[i], z[0]) for i in (2, 4, 7))
    assert torch.equal(few, z[2:4])
    assert torch.equal(parts, z)
    assert calls == ["forward"] * 3


def test_an_image_that_is_not_finite_does_not_change_the_others(calls):
    grid, weights, y = GridLaplacian(5, 6, boundary="torus"), torch.randn(48, 17), torch.randn(4, 17, 30)
    with using("fused"):
        expected = mixed_chebyshev_sum(weights, y, grid, 2)
        y[1] = torch.nan
        actual = mixed_chebyshev_sum(weights, y, grid, 2)
    assert actual[1].isnan().all()
    assert torch.equal(actual[[0, 2, 3]], expected[[0, 2, 3]])
    assert calls == ["forward"] * 2


def test_gradients(calls):
    grid = GridLaplacian(3, 4, boundary="torus")
    weights = torch.randn(16, 8, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 8, 12, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        assert gradcheck(lambda *parts: mixed_chebyshev_sum(*parts, grid, 1), (weights, y))
        assert gradgradcheck(lambda *parts: mixed_chebyshev_sum(*parts, grid, 1), (weights, y))
    assert set(calls) == {"forward", "backward"}


def test_the_operators_pass_the_checks_of_pytorch(calls):
    weights, y = torch.rand(32, 17, requires_grad=True), torch.rand(2, 17, 20, requires_grad=True)
    grid = (4, 5, 8, True, 0.3)
    torch.library.opcheck(torch.ops.tigranet.mixed_chebyshev_sum.default, (weights, y, 1, *grid))
    args = (torch.rand(2, 16, 20), weights.detach(), y.detach(), 1, *grid)
    torch.library.opcheck(torch.ops.tigranet.mixed_chebyshev_sum_backward.default, args)
    assert set(calls) == {"forward", "backward"}


@pytest.mark.parametrize(
    ("grid", "batch", "maps", "in_maps"),
    [
        (GridLaplacian(6, 7, boundary="free"), 8, 32, 32),
        (GridLaplacian(2, 20, boundary="torus"), 8, 32, 32),  # the rows do not wrap around
        (GridLaplacian(3, 5, boundary="torus"), 8, 32, 32),  # fewer nodes than a vector has numbers
        (GridLaplacian(6, 7, boundary="torus"), 1, 31, 32),  # fewer signals than a piece
        (GridLaplacian(6, 7, boundary="torus"), 8, 15, 32),  # fewer maps than a vector has numbers
        (GridLaplacian(6, 7, boundary="torus"), 8, 32, 15),
        (GridLaplacian(6, 7, boundary="torus"), 0, 32, 32),
    ],
)
def test_it_is_not_chosen_where_the_kernels_do_not_fit(grid, batch, maps, in_maps, calls):
    weights, y = torch.rand(3 * maps, in_maps), torch.rand(batch, in_maps, grid.num_nodes)
    with using("fused"):
        torch.testing.assert_close(
            mixed_chebyshev_sum(weights, y, grid, 2), mixed_chebyshev_sum.reference(weights, y, grid, 2)
        )
    assert calls == []


@pytest.mark.parametrize(
    ("side", "batch", "in_maps", "maps", "degree", "own_products", "expected"),
    [
        (34, 8, 128, 32, 5, False, True),
        (34, 8, 128, 64, 5, False, True),
        (34, 8, 128, 64, 8, True, True),
        (34, 8, 32, 32, 5, False, True),
        (34, 8, 32, 32, 5, True, False),  # mixing at each node is twice as fast with our own products
        (28, 8, 128, 32, 5, False, True),
        (8, 32, 128, 32, 5, False, True),
        (34, 1, 128, 32, 5, False, False),  # the matrices of all frequencies take longer than the products with them
        (34, 8, 128, 32, 1, False, False),
        (34, 8, 128, 8, 5, False, False),
        (200, 8, 128, 32, 5, False, False),
    ],
)
def test_it_is_chosen_where_it_pays(side, batch, in_maps, maps, degree, own_products, expected, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(map_products, "_mkl_has_half_speed", lambda: own_products)
    weights, y = torch.empty((degree + 1) * maps, in_maps), torch.empty(1, 1, 1).expand(batch, in_maps, side**2)
    assert spectral_mixing.pays(weights, y, degree, GridSpec(side, side, 8, True, 0.3)) is expected


COMPILE = """
import torch
from tigranet import GridLaplacian
from tigranet.ops import mixed_chebyshev_sum, spectral_mixing

spectral_mixing.MIN_GAIN = float("inf")
grid, weights = GridLaplacian(6, 7, boundary="torus"), torch.randn(96, 32)
compiled = torch.compile(lambda y: mixed_chebyshev_sum(weights, y, grid, 2), backend="aot_eager", fullgraph=True)
for batch in (4, 5, 9):
    y = torch.randn(batch, 32, 42)
    torch.testing.assert_close(compiled(y), mixed_chebyshev_sum(weights, y, grid, 2))
"""


def test_it_compiles_for_several_batch_sizes(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.returncode == 0, process.stderr
