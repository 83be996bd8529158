import gc
import pickle
import weakref
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from orientation_moves import quarter_turn, rotate_plain
from tigranet import GridLaplacian, SparseLaplacian
from tigranet.circular_harmonics import circular_harmonics
from tigranet.layers import GroupBlock, GroupConv, LiftingConv, steerable_conv
from tigranet.testing import blobs, equivariance_error, on_nodes, torus_shifts

BOUNDARIES = ["free", "torus"]


# the layers compute what their docstrings define


@pytest.mark.parametrize("orientations", [4, 8])
def test_the_filter_between_two_orientations_is_the_rotated_combination_of_the_basis(orientations):
    conv = GroupConv(3 * orientations, 2, orientations, size=3).double()
    basis = torch.from_numpy(circular_harmonics(3, orientations))
    filters = conv.filters().reshape(orientations, 2, orientations, 3, 3, 3)
    for j in range(orientations):
        for i in range(orientations):
            weights = conv.weight[:, :, (j - i) % orientations]
            torch.testing.assert_close(filters[j, :, i], torch.einsum("oab,bxy->oaxy", weights, basis[j]))


@pytest.mark.parametrize(("boundary", "mode"), [("free", "replicate"), ("torus", "circular")])
@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize(
    ("layer", "in_maps", "out_features", "orientations", "dtype"),
    [
        (LiftingConv, 2, 3, 4, torch.float64),
        (GroupConv, 16, 4, 8, torch.float64),  # whose basis is rounded, so PyTorch computes
        (GroupConv, 16, 4, 8, torch.float32),  # where our kernels compute up to size 5
    ],
)
def test_the_layer_is_a_convolution_on_the_padded_image(
    layer, in_maps, out_features, orientations, dtype, boundary, mode, size
):
    conv = layer(in_maps, out_features, orientations, size).to(dtype)
    y = torch.randn(2, in_maps, 6, 7, dtype=dtype)
    expected = F.conv2d(F.pad(y, (size // 2,) * 4, mode=mode), conv.filters())
    actual = conv(y.flatten(2), GridLaplacian(6, 7, boundary=boundary))
    torch.testing.assert_close(actual, expected.flatten(2))
    omega = torch.rand(2, 1, 42) < 0.5
    torch.testing.assert_close(conv(y.flatten(2), GridLaplacian(6, 7, boundary=boundary), omega), actual * omega)


def test_a_plain_background_stays_plain():
    conv = LiftingConv(1, 3, 8, 5)
    z = conv(torch.full((1, 1, 48), 0.7), GridLaplacian(6, 8))
    torch.testing.assert_close(z, z[..., :1].expand_as(z))
    by_orientation = z[0, :, 0].reshape(8, 3)
    torch.testing.assert_close(by_orientation, by_orientation[:1].expand(8, 3))


# the layers have the symmetry that their docstrings claim


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # our kernels compute 8 orientations in float32
@pytest.mark.parametrize("orientations", [4, 8, 12])
@pytest.mark.parametrize(("height", "width"), [(6, 6), (5, 8)])
def test_quarter_turns_rotate_the_maps_and_permute_the_orientations(boundary, dtype, orientations, height, width):
    y = torch.randn(2, 2, height * width, dtype=dtype)
    lift = LiftingConv(2, 4, orientations, 5).to(dtype)
    layers = [GroupConv(4 * orientations, 4, orientations, 3), GroupBlock(4 * orientations, orientations, 3)]
    for turns in (1, 2, 3):
        side, other = (height, width) if turns == 2 else (width, height)
        grid, turned_grid = (
            GridLaplacian(height, width, boundary=boundary),
            GridLaplacian(side, other, boundary=boundary),
        )
        z = lift(y, grid)
        turned = lift(rotate_plain(height, width, turns)(y), turned_grid)
        torch.testing.assert_close(turned, quarter_turn(orientations, 4, height, width, turns)(z))
        for layer in layers:
            expected = quarter_turn(orientations, 4, height, width, turns)(layer.to(dtype).eval()(z, grid))
            torch.testing.assert_close(layer(turned, turned_grid), expected)


def test_shifts_on_the_torus_are_exact_up_to_rounding():
    grid = GridLaplacian(6, 5, boundary="torus")
    lift, block = LiftingConv(1, 2, 4, 3).double(), GroupBlock(8, 4, 3).double().eval()
    y = torch.randn(1, 1, 30, dtype=torch.float64)
    for shift in list(torus_shifts(6, 5))[1::5]:
        error = equivariance_error(lambda y: block(lift(y, grid), grid), y, on_nodes(shift, 6, 5))
        assert error < 1e-13


@pytest.mark.parametrize("size", [5, 7])
def test_smooth_images_rotate_by_one_orientation_for_every_45_degrees(size):
    """The mean square of each orientation over the image is permuted, up to the anisotropy of the pixels."""
    grid, conv = GridLaplacian(28, 28), LiftingConv(1, 4, 8, size)

    def energies(degrees):
        return conv(blobs(degrees).flatten(2), grid).unflatten(1, (8, 4)).square().mean((2, 3))

    upright = energies(0)
    for turns in range(1, 8):
        torch.testing.assert_close(energies(45 * turns), upright.roll(turns, 1), rtol=0.02, atol=0.001)


# gradients, precision, wrong input


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_gradcheck(boundary):
    grid, conv = GridLaplacian(3, 4, boundary=boundary), GroupConv(8, 2, 4, 3).double()
    y = torch.randn(1, 8, 12, dtype=torch.float64, requires_grad=True)

    def function(y, weight):
        return torch.func.functional_call(conv, {"weight": weight}, (y, grid))

    assert gradcheck(function, (y, conv.weight.detach().requires_grad_()))


@pytest.mark.parametrize(("layer", "in_maps"), [(LiftingConv, 1), (GroupConv, 16)])
def test_autocast_computes_in_half_precision_and_keeps_the_filters_exact(layer, in_maps):
    conv, y, grid = layer(in_maps, 2, 8, 5), torch.rand(2, in_maps, 64), GridLaplacian(8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        z = conv(y, grid)
        assert conv.filters().dtype == torch.float32
    exact = conv(y, grid)
    assert z.dtype == torch.float32  # the kernels of the next layer read nothing else on a CPU
    torch.testing.assert_close(z.bfloat16().float(), z, rtol=0, atol=0)
    assert not torch.equal(z, exact)
    torch.testing.assert_close(z, exact, rtol=0.05, atol=0.05)


def test_the_result_is_stored_pixel_by_pixel():
    z = LiftingConv(1, 2, 8, 5)(torch.rand(2, 1, 64), GridLaplacian(8, 8))
    assert z.stride(1) == 1
    assert GroupBlock(16, 8, 3)(z, GridLaplacian(8, 8)).stride(1) == 1
    assert GridLaplacian(8, 8).coarsening(z).stride(1) == 1


def test_the_scale_of_maps_is_kept():
    torch.manual_seed(0)
    conv, grid = GroupConv(64, 8, 8, 5), GridLaplacian(16, 16)
    z = conv(torch.relu(torch.randn(8, 64, 256)), grid)
    assert 0.5 < z.std() < 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((8, 2, 6, 3), ["multiple of 4", "got 6"]),
        ((8, 2, 0, 3), ["multiple of 4", "got 0"]),
        ((9, 2, 4, 3), ["4 input maps per feature", "9 input maps"]),
        ((8, 0, 4, 3), ["at least 1 output feature", "got 0"]),
        ((8, 2, 4, 4), ["odd", "4"]),
    ],
)
def test_wrong_numbers_are_errors(arguments, words):
    with pytest.raises(ValueError, match="expected") as error:
        GroupConv(*arguments)
    assert all(word in str(error.value) for word in words)


def test_wrong_signals_and_other_graphs_are_errors():
    conv = LiftingConv(2, 3, 8, 3)
    with pytest.raises(ValueError, match=r"\(batch, 2, nodes\).*\(1, 3, 20\)"):
        conv(torch.rand(1, 3, 20), GridLaplacian(4, 5))
    with pytest.raises(TypeError, match=r"SparseLaplacian.*GP"):
        conv(torch.rand(1, 2, 3), SparseLaplacian([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))


# filters, or the coefficients for our kernels, are computed once as long as nothing changes them

COMPUTED_FROM_WEIGHTS = pytest.mark.parametrize(
    ("orientations", "function"), [(4, "rotated_filters"), (8, "coefficients")], ids=["filters", "coefficients"]
)
ORIENTATIONS = pytest.mark.parametrize("orientations", [4, 8])


def expected_result(conv, y, grid):
    padded = grid.pad(y.unflatten(2, (grid.height, grid.width)), conv.size // 2)
    return F.conv2d(padded, conv.filters()).flatten(2)


def assert_current(conv, y, grid):
    with torch.inference_mode():
        torch.testing.assert_close(conv(y, grid), expected_result(conv, y, grid))
    with torch.no_grad():
        torch.testing.assert_close(conv(y, grid), expected_result(conv, y, grid))
    torch.testing.assert_close(conv(y, grid), expected_result(conv, y, grid))


def layer_and_input(orientations):
    conv = GroupConv(2 * orientations, 2, orientations, 3)
    return conv, torch.rand(1, 2 * orientations, 20), GridLaplacian(4, 5)


@COMPUTED_FROM_WEIGHTS
def test_without_gradients_they_are_computed_once(orientations, function, monkeypatch):
    (conv, y, grid), calls, compute = layer_and_input(orientations), [], getattr(steerable_conv, function)
    monkeypatch.setattr(steerable_conv, function, lambda *args: calls.append(1) or compute(*args))
    with torch.no_grad():
        results = [conv.eval()(y, grid) for _ in range(3)]
        assert len(calls) == 1
        conv.weight.data.mul_(2)
        torch.testing.assert_close(conv(y, grid), 2 * results[0])
        assert len(calls) == 2
    assert torch.equal(results[0], results[2])
    assert conv(y, grid).requires_grad  # with gradients, they are part of the graph


def test_training_and_inference_give_the_same_bits():
    conv, y, grid = layer_and_input(8)
    z = conv.train()(y, grid)
    assert z.requires_grad
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert torch.equal(conv(y, grid), z)
            assert torch.equal(conv.eval()(y, grid), z)


@ORIENTATIONS
def test_changed_weights_are_noticed(orientations):
    conv, y, grid = layer_and_input(orientations)
    conv.eval()
    assert_current(conv, y, grid)
    conv.load_state_dict(layer_and_input(orientations)[0].state_dict())
    assert_current(conv, y, grid)
    optimiser = torch.optim.SGD(conv.parameters(), lr=0.1)
    conv(y, grid).sum().backward()
    optimiser.step()
    assert_current(conv, y, grid)
    conv.weight.data.mul_(2)  # does not change the version counter
    assert_current(conv, y, grid)
    conv.weight = torch.nn.Parameter(torch.rand_like(conv.weight))
    assert_current(conv, y, grid)
    with torch.inference_mode():
        conv.weight.add_(1)
    assert_current(conv, y, grid)
    assert_current(conv.double(), y.double(), grid)
    conv.to(torch.bfloat16).float()  # rounds the basis too
    assert_current(conv, y, grid)
    other = {"weight": torch.rand_like(conv.weight)}
    with torch.no_grad():
        result = torch.func.functional_call(conv, other, (y, grid))
    conv.load_state_dict(other)
    torch.testing.assert_close(result, expected_result(conv, y, grid))


@ORIENTATIONS
def test_frozen_weights_of_inference_mode_can_be_part_of_a_graph(orientations):
    conv, y, grid = layer_and_input(orientations)
    conv.requires_grad_(False)
    with torch.inference_mode():
        conv(y, grid)
    y.requires_grad_()
    conv(y, grid).sum().backward()
    (expected,) = torch.autograd.grad(expected_result(conv, y, grid).sum(), y)
    torch.testing.assert_close(y.grad, expected)


@ORIENTATIONS
def test_transforms_see_their_own_weights(orientations):
    conv, y, grid = layer_and_input(orientations)

    def loss(weight):
        return torch.func.functional_call(conv, {"weight": weight}, (y, grid)).square().sum()

    with torch.no_grad():
        conv(y, grid)
        gradient = torch.func.grad(loss)(conv.weight.detach())
    (expected,) = torch.autograd.grad(loss(conv.weight), conv.weight)
    torch.testing.assert_close(gradient, expected)


@ORIENTATIONS
def test_what_is_stored_is_not_part_of_the_layer(orientations):
    conv, y, grid = layer_and_input(orientations)
    size, names = len(pickle.dumps(conv)), set(vars(conv))
    with torch.no_grad():
        conv(y, grid)
    assert (len(pickle.dumps(conv)), set(vars(conv))) == (size, names)
    assert set(conv.state_dict()) == {"weight"}
    for copy in (deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert_current(copy, y, grid)
        copy.reset_parameters()
        assert_current(copy, y, grid)
        assert_current(conv, y, grid)
    reference = weakref.ref(conv)
    del conv
    gc.collect()
    assert reference() is None
