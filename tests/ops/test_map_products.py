"""Our kernels mix maps as a matrix product does, forward and backward, and each node by itself."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.ops import map_products, mix, using
from tigranet.ops.cpu import map_products as kernels
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning

TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-14}
SHAPES = [  # batch, out_maps, in_maps, nodes
    (1, 8, 8, 16),
    (3, 9, 23, 49),
    (2, 40, 17, 100),
    (5, 16, 8, 1025),
    (7, 31, 70, 144),
]


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """Use our kernels whatever the processor is, and list those that run."""
    monkeypatch.setattr(map_products, "_mkl_has_half_speed", lambda: True)
    names = []
    for name in ("mix", "matrix_gradient"):
        function = getattr(kernels, name)
        monkeypatch.setattr(
            kernels, name, lambda *args, name=name, function=function: (names.append(name), function(*args))[1]
        )
    return names


def run(mode, weights, y, g):
    weights, y = weights.detach().requires_grad_(), y.detach().requires_grad_()
    with using(mode):
        z = mix(weights, y)
        return z.detach(), *torch.autograd.grad(z, (weights, y), g)


def assert_agree(weights, y, g):
    """Compare with PyTorch in float64, relative to the largest value of each result."""
    expected = run("plain", weights.double(), y.double(), g.double())
    for actual, exact in zip(run("fused", weights, y, g), expected, strict=True):
        assert actual.dtype == y.dtype
        assert (actual - exact).abs().max() <= TOLERANCE[y.dtype] * exact.abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("batch", "out_maps", "in_maps", "nodes"), SHAPES)
def test_it_is_a_matrix_product_at_each_node(batch, out_maps, in_maps, nodes, dtype, calls):
    y, g = torch.randn(batch, in_maps, nodes, dtype=dtype), torch.randn(batch, out_maps, nodes, dtype=dtype)
    assert_agree(torch.randn(out_maps, in_maps, dtype=dtype), y, g)
    assert set(calls) == {"mix", "matrix_gradient"}


@pytest.mark.parametrize("nodes", range(16, 120))
def test_every_node_is_counted_once(nodes, calls):
    """With small whole numbers, sums in single precision are exact."""
    weights, y, g = (torch.randint(-3, 4, shape).float() for shape in ((11, 10), (40, 10, nodes), (40, 11, nodes)))
    for actual, expected in zip(run("fused", weights, y, g), run("plain", weights, y, g), strict=True):
        assert torch.equal(actual, expected)
    assert "matrix_gradient" in calls


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_node_has_the_same_bits_wherever_it_is(threads):
    """So rotated and shifted images have rotated and shifted mixtures, bit for bit."""
    weights, y, order = torch.randn(21, 37), torch.randn(6, 37, 145), torch.randperm(145)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with using("fused"):
            z = mix(weights, y)
            assert torch.equal(mix(weights, y[:, :, order]), z[:, :, order])
            assert torch.equal(mix(weights, y[2:3, :, :40]), z[2:3, :, :40])
    finally:
        torch.set_num_threads(before)


def test_the_number_of_threads_does_not_change_the_gradients():
    weights, y, g, results = torch.randn(40, 24), torch.randn(9, 24, 900), torch.randn(9, 40, 900), []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            results.append(run("fused", weights, y, g))
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


def test_a_node_that_is_not_finite_does_not_change_the_others():
    weights, y = torch.randn(12, 9), torch.randn(2, 9, 75)
    with using("fused"):
        expected = mix(weights, y)
        y[1, :, 70] = torch.nan
        actual = mix(weights, y)
    assert actual[1, :, 70].isnan().all()
    actual[1, :, 70] = expected[1, :, 70]
    assert torch.equal(actual, expected)


def test_maps_weights_and_gradients_in_other_memory_layouts(calls):
    y, g = torch.randn(4, 50, 9).transpose(1, 2), torch.randn(4, 20, 50)[:, 1:17]
    assert_agree(torch.randn(18, 16).t()[:, ::2], y, g)
    assert_agree(torch.randn(16, 9), y[:1].expand(4, -1, -1), g.sum().expand(4, 16, 50))
    assert set(calls) == {"mix", "matrix_gradient"}


def test_gradients(calls):
    weights = torch.randn(9, 8, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 8, 11, dtype=torch.float64, requires_grad=True)
    with using("fused"):
        assert gradcheck(mix, (weights, y))
        assert gradgradcheck(mix, (weights, y))
        assert gradgradcheck(lambda weights: mix(weights, y.detach()).square(), weights)
        assert gradgradcheck(lambda y: mix(weights.detach(), y).square(), y)
    assert set(calls) == {"mix", "matrix_gradient"}


def test_the_gradient_of_images_is_not_computed(calls):
    weights, y = torch.randn(9, 8, requires_grad=True), torch.randn(2, 8, 20)
    mix(weights, y).sum().backward()
    assert calls == ["mix", "matrix_gradient"]
    torch.testing.assert_close(weights.grad, y.sum((0, 2)).expand(9, -1))


def test_the_operators_pass_the_checks_of_pytorch():
    weights, y = torch.rand(9, 8, requires_grad=True), torch.rand(2, 8, 20, requires_grad=True)
    torch.library.opcheck(torch.ops.tigranet.mix.default, (weights, y))
    for needs_y in (True, False):
        args = (torch.rand(2, 9, 20), weights.detach(), y.detach(), needs_y)
        torch.library.opcheck(torch.ops.tigranet.mix_backward.default, args)


@pytest.mark.parametrize(
    ("weights", "y"),
    [
        (torch.rand(7, 8), torch.rand(2, 8, 20)),  # fewer rows than a tile
        (torch.rand(8, 7), torch.rand(2, 7, 20)),
        (torch.rand(8, 8), torch.rand(2, 8, 15)),  # fewer nodes than a vector has numbers
        (torch.rand(8, 8), torch.rand(0, 8, 20)),
        (torch.rand(8, 8).half(), torch.rand(2, 8, 20).half()),
    ],
)
def test_pytorch_computes_what_the_kernels_do_not(weights, y, calls):
    with using("fused"):
        torch.testing.assert_close(mix(weights, y), torch.einsum("ok,bkn->bon", weights, y))
    assert calls == []


def test_autocast_and_plain_kernels_use_pytorch(calls):
    weights, y = torch.rand(8, 8), torch.rand(2, 8, 20)
    with torch.autocast("cpu", torch.bfloat16):
        assert mix(weights, y).dtype == torch.float32
    with using("plain"):
        mix(weights, y)
    assert calls == []


def test_a_kernel_that_cannot_be_compiled_is_replaced(monkeypatch):
    def fail(*args):
        raise KernelUnavailableError("it does not compile")

    monkeypatch.setattr(kernels, "mix", fail)
    monkeypatch.setattr(kernels, "matrix_gradient", fail)
    weights, y = torch.randn(9, 8), torch.randn(2, 8, 20)
    with pytest.warns(SlowKernelsWarning, match="does not compile"):
        z, *gradients = run("auto", weights, y, torch.ones(2, 9, 20))
    torch.testing.assert_close(z, torch.einsum("ok,bkn->bon", weights, y))
    torch.testing.assert_close(gradients[1], weights.sum(0)[None, :, None].expand(2, -1, 20))
    with pytest.raises(KernelUnavailableError, match="does not compile"):
        run("fused", weights, y, torch.ones(2, 9, 20))


@pytest.mark.parametrize(
    ("name", "features", "expected"),
    [
        ("znver5", {"avx512f": True}, True),
        ("znver4", {"avx512f": True}, False),
        ("znver3", {"avx512f": False}, False),
        ("sapphirerapids", {"avx512f": True}, False),
        ("generic", {}, False),
    ],
)
def test_the_processor_decides(name, features, expected, monkeypatch):
    monkeypatch.undo()
    from llvmlite import binding

    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: name)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert map_products._mkl_has_half_speed.__wrapped__() is expected
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert not map_products._mkl_has_half_speed.__wrapped__()


COMPILE = """
import torch
from tigranet.ops import map_products, mix

map_products._mkl_has_half_speed = lambda: True
weights = torch.randn(9, 8, requires_grad=True)
compiled = torch.compile(lambda y: mix(weights, y), backend="aot_eager", fullgraph=True)
for batch in (4, 5, 9):
    y = torch.randn(batch, 8, 42)
    torch.testing.assert_close(compiled(y), mix(weights, y))
    (gradient,) = torch.autograd.grad(compiled(y).square().sum(), weights)
    torch.testing.assert_close(gradient, torch.autograd.grad(mix(weights, y).square().sum(), weights)[0])
"""


def test_it_compiles_for_several_batch_sizes(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.returncode == 0, process.stderr
