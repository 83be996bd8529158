"""Our kernels convolve as PyTorch does with the rotated filters, forward and backward, and each pixel by itself."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from orientation_moves import quarter_turn
from tigranet import GridLaplacian
from tigranet.circular_harmonics import basis_size, circular_harmonics
from tigranet.layers import GroupConv
from tigranet.ops import group_convolution, using
from tigranet.ops.cpu import group_convolution as kernels
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning
from tigranet.ops.group_convolution import kernels_pay, orientation_differences, rotated_filters, side_length
from tigranet.ops.orientation_frequencies import coefficients

TOLERANCE = {torch.float32: 3e-6, torch.float64: 3e-14}
DTYPES = [torch.float32, torch.float64]
SIZES = [1, 3, 5]
SHAPES = [  # batch, in_features, out_features, height, width
    (1, 2, 2, 1, 1),
    (3, 4, 6, 7, 5),
    (2, 8, 4, 28, 28),
    (1, 6, 12, 33, 64),
    (2, 12, 2, 90, 21),  # several strips
    (18, 2, 4, 1, 11),  # several images whose gradients by the weights are summed together
]


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """List the kernels that run."""
    names = []
    for name in ("forward", "backward"):
        function = getattr(kernels, name)
        monkeypatch.setattr(
            kernels, name, lambda *args, name=name, function=function: (names.append(name), function(*args))[1]
        )
    return names


def standard_basis(size, dtype, orientations=8):
    return torch.from_numpy(circular_harmonics(size, orientations)).flatten(2).to(dtype)


def random_input(batch, in_features, out_features, size, height, width, dtype=torch.float32):
    """Return padded features, the weights and the basis of a layer, and a gradient by its output."""
    x = torch.randn(batch, 8 * in_features, height + size - 1, width + size - 1, dtype=dtype)
    weight = torch.randn(out_features, in_features, 8, basis_size(size), dtype=dtype)
    g = torch.randn(batch, 8 * out_features, height, width, dtype=dtype)
    return x, weight, standard_basis(size, dtype), g


def run(mode, x, weight, basis, g):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    with using(mode):
        z = group_convolution(x, weight, basis)
        return z.detach(), *torch.autograd.grad(z, (x, weight), g)


def assert_agree(x, weight, basis, g):
    """Compare with PyTorch in float64, relative to the largest value of each result."""
    exact_basis = standard_basis(side_length(basis), torch.float64)
    expected = run("plain", x.double(), weight.double(), exact_basis, g.double())
    for actual, exact in zip(run("fused", x, weight, basis, g), expected, strict=True):
        assert (actual.dtype, actual.shape) == (x.dtype, exact.shape)
        assert (actual - exact).abs().max() <= TOLERANCE[x.dtype] * exact.abs().max()


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


# the result and the gradients


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("batch", "in_features", "out_features", "height", "width"), SHAPES)
def test_it_is_the_convolution_with_the_rotated_filters(
    batch, in_features, out_features, size, height, width, dtype, calls
):
    assert_agree(*random_input(batch, in_features, out_features, size, height, width, dtype))
    assert set(calls) == {"forward", "backward"}


@pytest.mark.parametrize(("in_features", "out_features"), [(1, 3), (5, 1), (3, 7)])
def test_any_number_of_features_in_double_precision(in_features, out_features, calls):
    assert_agree(*random_input(2, in_features, out_features, 3, 6, 7, torch.float64))
    assert calls == ["forward", "backward"]


@pytest.mark.parametrize("width", range(1, 41))
def test_every_pixel_is_counted_once(width, calls):
    for size, height in ((3, 3), (5, 2)):
        assert_agree(*random_input(1, 2, 2, size, height, width))
        assert_agree(*random_input(1, 1, 1, size, width, height, torch.float64))
    assert set(calls) == {"forward", "backward"}


def test_known_coefficients_are_not_computed_again(calls, monkeypatch):
    x, weight, basis, _ = random_input(2, 4, 2, 3, 5, 6)
    known, expected = coefficients(weight, 3), group_convolution(x, weight, basis)
    monkeypatch.setattr("tigranet.ops.orientation_frequencies.coefficients", None)
    assert torch.equal(group_convolution(x, weight, basis, known), expected)
    assert calls == ["forward", "forward"]


def test_features_weights_and_gradients_in_other_memory_layouts(calls):
    x, weight, basis, g = random_input(3, 4, 6, 3, 8, 9)
    by_pixel = x.contiguous(memory_format=torch.channels_last)
    assert_agree(by_pixel, weight, basis, g.contiguous(memory_format=torch.channels_last))
    assert_agree(x[:1].expand(3, -1, -1, -1), weight, basis, g.sum().expand_as(g))
    assert_agree(by_pixel[:, :, 1:-1, ::2], weight[:, :, :, [0, 1, 2, 3, 5, 4]].flip(0), basis, g[:, :, :6, :4])
    assert_agree(torch.randn(10, 3, 11, 64)[:, 1].permute(2, 0, 1)[None, ::2], weight, basis, g[:1])
    assert_agree(by_pixel.transpose(2, 3), weight.expand(6, -1, -1, -1), basis, g.transpose(2, 3))
    assert calls == 5 * ["forward", "backward"]


def test_the_result_and_its_gradient_are_stored_pixel_by_pixel():
    x, weight, basis, g = random_input(2, 2, 4, 3, 5, 6)
    z, g_x, g_weight = run("fused", x, weight, basis, g)
    assert z.is_contiguous(memory_format=torch.channels_last)
    assert g_x.is_contiguous(memory_format=torch.channels_last)
    assert g_weight.is_contiguous()


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("change", ["other numbers", "rounded"])
def test_the_numbers_of_another_basis_are_used(size, change, calls):
    x, weight, basis, g = random_input(2, 3, 2, size, 5, 6, torch.float64)
    basis = basis.float().double() if change == "rounded" else basis + 0.1 * torch.randn_like(basis)
    expected = run("plain", x, weight, basis, g)
    for actual, exact in zip(run("fused", x, weight, basis, g), expected, strict=True):
        torch.testing.assert_close(actual, exact, rtol=1e-13, atol=1e-13)
    assert calls == []


def test_the_gradient_of_features_is_not_computed(calls):
    x, weight, basis, g = random_input(2, 4, 2, 3, 5, 6)
    expected = run("fused", x, weight, basis, g)[2]
    weight.requires_grad_()
    z = group_convolution(x, weight, basis)
    assert torch.equal(torch.autograd.grad(z, weight, g)[0], expected)
    assert calls == 2 * ["forward", "backward"]


def test_frozen_weights_leave_the_gradient_of_features(calls):
    x, weight, basis, g = random_input(2, 4, 2, 3, 5, 6)
    expected = run("fused", x, weight, basis, g)[1]
    x.requires_grad_()
    z = group_convolution(x, weight, basis, coefficients(weight, 3))
    assert torch.equal(torch.autograd.grad(z, x, g)[0], expected)
    assert calls == 2 * ["forward", "backward"]


@pytest.mark.parametrize("size", SIZES)
def test_gradients(size, calls):
    x, weight, basis, _ = random_input(2, 1, 2, size, 2, 2, torch.float64)
    x.requires_grad_()
    weight.requires_grad_()

    def convolve(x, weight):
        return group_convolution(x, weight, basis)

    with using("fused"):
        assert gradcheck(convolve, (x, weight), fast_mode=size > 1)
        assert set(calls) == {"forward", "backward"}
        assert gradgradcheck(convolve, (x, weight), fast_mode=True)
        assert gradgradcheck(lambda x: convolve(x, weight.detach()).square(), x, fast_mode=True)
        assert gradgradcheck(lambda weight: convolve(x.detach(), weight).square(), weight, fast_mode=True)


# each pixel, image and thread by itself


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_pixel_has_the_same_bits_wherever_it_is(threads, set_threads):
    """So an image has the same result in any batch, and a shifted one has the shifted result."""
    x, weight, basis, _ = random_input(5, 8, 6, 3, 30, 37)
    set_threads(1)
    expected = group_convolution(x, weight, basis)
    set_threads(threads)
    assert torch.equal(group_convolution(x, weight, basis), expected)
    for image in range(5):
        assert torch.equal(group_convolution(x[image : image + 1], weight, basis), expected[image : image + 1])
    part = group_convolution(x[2:4, :, 5:23, 11:], weight, basis)
    assert torch.equal(part, expected[2:4, :, 5:21, 11:])


@pytest.mark.parametrize("size", [3, 5])
def test_the_number_of_threads_does_not_change_the_gradients(size, set_threads):
    arguments, results = random_input(19, 8, 12, size, 20, 21), []
    for threads in (1, 2, 3):
        set_threads(threads)
        results.append(run("fused", *arguments))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("line", "column"), [(0, 0), (7, 9), (8, 10), (11, 14), (19, 15), (12, 0)])
def test_a_pixel_that_is_not_finite_changes_what_its_filters_reach_and_nothing_else(size, line, column, value):
    """The corners of a filter are zero, so they reach nothing."""
    x, weight, basis, g = random_input(2, 2, 4, size, 20, 16)
    expected, g_expected, _ = run("fused", x, weight, basis, g)
    reach = (basis != 0).any(1).any(0).view(1, 1, size, size).float()
    is_centre = torch.zeros(20, 16)
    is_centre[line, column] = 1
    reached_input = F.conv_transpose2d(is_centre[None, None], reach)[0, 0] > 0
    border = size // 2
    x[1, 3, line + border, column + border] = value
    g[1, 9, line, column] = value
    z, g_x, _ = run("fused", x, weight, basis, g)
    reached_output = reached_input[border : border + 20, border : border + 16]
    for actual, before, is_reached in ((z, expected, reached_output), (g_x, g_expected, reached_input)):
        assert not actual[1, :, is_reached].isfinite().any()
        actual[1, :, is_reached] = before[1, :, is_reached]
        assert torch.equal(actual, before)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("height", "width"), [(8, 8), (5, 9)])
def test_quarter_turns_rotate_the_maps_and_permute_the_orientations(size, turns, height, width, calls):
    x, weight, basis, _ = random_input(2, 4, 6, size, height, width, torch.float64)
    padded = height + size - 1, width + size - 1
    turned_sides = padded if turns == 2 else padded[::-1]
    turned = quarter_turn(8, 4, *padded, turns)(x.flatten(2)).unflatten(2, turned_sides)
    expected = quarter_turn(8, 6, height, width, turns)(group_convolution(x, weight, basis).flatten(2))
    actual = group_convolution(turned, weight, basis).flatten(2)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    assert calls == ["forward", "forward"]


# the filters


def test_the_filters_between_orientations_that_are_rotated_by_90_degrees_are_the_rotated_filters():
    weight = torch.randn(3, 2, 8, 13, dtype=torch.float64)
    filters = rotated_filters(weight, standard_basis(5, torch.float64)).view(8, 3, 8, 2, 5, 5)
    torch.testing.assert_close(filters.roll((-2, -2), (0, 2)), filters.rot90(1, (-2, -1)))


def test_the_differences_of_orientations_count_from_the_input_to_the_output():
    assert orientation_differences(4, 4).tolist() == [[0, 3, 2, 1], [1, 0, 3, 2], [2, 1, 0, 3], [3, 2, 1, 0]]
    assert orientation_differences(4, 1).tolist() == [[0], [0], [0], [0]]


# where PyTorch computes


def test_kernels_pay_for_8_orientations_and_whole_vectors():
    for dtype in DTYPES:
        for size in SIZES:
            x, weight, basis, _ = random_input(1, 2, 4, size, 3, 4, dtype)
            assert kernels_pay(x, weight, basis)
    with using("fused"):
        assert kernels_pay(x, weight, basis)


@pytest.mark.parametrize(
    ("x", "weight", "basis"),
    [
        (torch.rand(1, 8, 9, 9), torch.rand(2, 2, 4, 6), standard_basis(3, torch.float32, orientations=4)),
        (torch.rand(1, 16, 9, 9), torch.rand(2, 1, 16, 6), standard_basis(3, torch.float32, orientations=16)),
        (torch.rand(1, 2, 9, 9), torch.rand(2, 2, 1, 6), standard_basis(3, torch.float32)),  # no orientations before
        (torch.rand(1, 16, 9, 9), torch.rand(2, 2, 8, 22), standard_basis(7, torch.float32)),
        (torch.rand(1, 24, 9, 9), torch.rand(2, 3, 8, 6), standard_basis(3, torch.float32)),
        (torch.rand(1, 16, 9, 9), torch.rand(3, 2, 8, 6), standard_basis(3, torch.float32)),
        (torch.rand(0, 16, 9, 9), torch.rand(2, 2, 8, 6), standard_basis(3, torch.float32)),
        (torch.rand(1, 16, 9, 9).bfloat16(), torch.rand(2, 2, 8, 6).bfloat16(), standard_basis(3, torch.bfloat16)),
        (torch.rand(1, 16, 9, 9).half(), torch.rand(2, 2, 8, 6).half(), standard_basis(3, torch.float16)),
        (torch.rand(1, 16, 9, 9), torch.rand(2, 2, 8, 6), standard_basis(3, torch.float64)),
    ],
    ids=["4", "16", "lifting", "size 7", "3 in", "3 out", "no image", "bfloat16", "half", "two types"],
)
def test_pytorch_computes_what_the_kernels_do_not(x, weight, basis, calls):
    assert not kernels_pay(x, weight, basis)
    with using("fused"):
        actual = group_convolution(x, weight, basis)
    assert torch.equal(actual, F.conv2d(x, rotated_filters(weight, basis)))
    assert calls == []


def test_autocast_plain_kernels_and_devices_without_numbers_use_pytorch(calls):
    x, weight, basis, _ = random_input(1, 2, 2, 3, 5, 6)
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels_pay(x, weight, basis)
        assert group_convolution(x, weight, basis).dtype == torch.bfloat16
    with using("plain"):
        assert not kernels_pay(x, weight, basis)
        assert torch.equal(group_convolution(x, weight, basis), F.conv2d(x, rotated_filters(weight, basis)))
    assert not kernels_pay(x.to("meta"), weight.to("meta"), basis.to("meta"))
    assert calls == []


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        ((1, 24, 9, 9), (2, 2, 8, 6)),  # more maps than the weights have
        ((1, 8, 9, 9), (2, 2, 8, 6)),
        ((1, 16, 2, 9), (2, 2, 8, 6)),  # lower than a filter
        ((1, 16, 9, 9), (2, 2, 8, 13)),  # the weights of larger filters
    ],
)
def test_wrong_shapes_are_errors_of_pytorch(x, weight, monkeypatch, without_shape_checks):
    monkeypatch.setattr(kernels, "forward", None)  # it would read other memory
    with pytest.raises(RuntimeError):
        group_convolution(torch.rand(x), torch.rand(weight), standard_basis(3, torch.float32))


def test_a_kernel_that_cannot_be_compiled_is_replaced(monkeypatch):
    def fail(*args):
        raise KernelUnavailableError("no compiler for waves")

    monkeypatch.setattr(kernels, "forward", fail)
    monkeypatch.setattr(kernels, "backward", fail)
    arguments = random_input(2, 4, 2, 3, 5, 6)
    expected = run("plain", *arguments)
    with pytest.warns(SlowKernelsWarning, match="no compiler for waves"):
        actual = run("auto", *arguments)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b)
    with pytest.raises(KernelUnavailableError, match="no compiler for waves"):
        run("fused", *arguments)


# compilers and transforms


@pytest.mark.parametrize("change", [0, 0.1], ids=["standard basis", "other basis"])
def test_the_operators_pass_the_checks_of_pytorch(change):
    x, weight, basis, g = random_input(2, 2, 4, 3, 5, 6)
    basis = basis + change
    x.requires_grad_()
    weight.requires_grad_()
    for known in (None, coefficients(weight.detach(), 3)):
        torch.library.opcheck(torch.ops.tigranet.group_convolution.default, (x, weight, basis, known))
    for needs_x in (True, False):
        arguments = (g, x.detach(), weight.detach(), basis, needs_x)
        torch.library.opcheck(torch.ops.tigranet.group_convolution_backward.default, arguments)


def test_function_transforms_use_pytorch(calls):
    conv, grid, y = GroupConv(16, 2, 8, 3), GridLaplacian(5, 6), torch.randn(2, 16, 30)

    def loss(weight, y):
        return torch.func.functional_call(conv, {"weight": weight}, (y, grid)).square().sum()

    (expected,) = torch.autograd.grad(loss(conv.weight, y), conv.weight)
    gradient = torch.func.grad(loss)(conv.weight.detach(), y)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)
    x, weight, basis, _ = random_input(3, 2, 4, 3, 5, 6)
    mapped = torch.func.vmap(lambda image: group_convolution(image[None], weight, basis)[0])(x)
    torch.testing.assert_close(mapped, group_convolution(x, weight, basis), rtol=1e-5, atol=1e-5)
    assert calls == ["forward", "backward", "forward"]


COMPILE = """
import torch
from tigranet import GridLaplacian
from tigranet.layers import GroupConv

conv, grid = GroupConv(16, 4, 8, 3), GridLaplacian(5, 6)
compiled = torch.compile(lambda y: conv(y, grid), backend="aot_eager", fullgraph=True)
for batch in (4, 5, 9):
    y = torch.randn(batch, 16, 30)
    torch.testing.assert_close(compiled(y), conv(y, grid))
    (gradient,) = torch.autograd.grad(compiled(y).square().sum(), conv.weight)
    torch.testing.assert_close(gradient, torch.autograd.grad(conv(y, grid).square().sum(), conv.weight)[0])
with torch.no_grad():
    torch.testing.assert_close(compiled(y), conv(y, grid))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv

    def forward(self, y):
        return self.conv(y, grid)


exported = torch.export.export(Layer(), (y,)).module()
torch.testing.assert_close(exported(y), conv(y, grid))
"""


def test_the_layer_compiles_for_several_batch_sizes_and_is_exported(warm_process):
    """In a separate process, where types are not checked at run time."""
    process = warm_process.run(COMPILE)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("wrong", [lambda c: c[:-1], lambda c: c.double()])
def test_given_coefficients_of_another_layer_are_an_error(wrong):
    x, weight, basis, _ = random_input(1, 2, 4, 3, 5, 5)
    given = coefficients(weight, 3)
    torch.testing.assert_close(group_convolution(x, weight, basis, given), group_convolution(x, weight, basis))
    with pytest.raises(ValueError, match=rf"{len(given)} coefficients of type torch.float32.*{weight.shape[1]}"):
        group_convolution(x, weight, basis, wrong(given))
