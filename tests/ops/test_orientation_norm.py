"""Features normalised by the moments of the batch: the fused version agrees with batch normalisation and padding."""

from importlib import import_module

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tigranet.ops import orientation_norm, using
from tigranet.ops.grid_spec import GridSpec

EPS = 1e-5
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
module = import_module("tigranet.ops.orientation_norm")


def pixel_by_pixel(y):
    return y.transpose(1, 2).contiguous().transpose(1, 2)


def make_inputs(batch, orientations, features, nodes, dtype=torch.float32):
    """Return features with different means and scales; and a scale, with one negative entry, and a bias per feature."""
    y = torch.randn(batch, orientations, features, nodes, dtype=dtype)
    y = y * (0.1 + 5 * torch.rand(features, 1, dtype=dtype)) + 10 * torch.randn(features, 1, dtype=dtype)
    scale = torch.rand(features, dtype=dtype) + 0.5
    scale[-1] *= -1
    return pixel_by_pixel(y.flatten(1, 2)), scale, torch.randn(features, dtype=dtype)


def run(mode, inputs, padding, g):
    """Return the images, the moments and the gradients."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    with using(mode):
        z, mean, variance = orientation_norm(*inputs, EPS, *padding)
        return z.detach(), mean, variance, *torch.autograd.grad(z, inputs, g)


def assert_agree(inputs, padding, g):
    y, scale, _ = inputs
    rtol = TOLERANCE[y.dtype]
    actual, expected = run("fused", inputs, padding, g), run("plain", inputs, padding, g)
    for fused, plain in zip(actual[:3], expected[:3], strict=True):
        assert fused.shape == plain.shape
        torch.testing.assert_close(fused, plain, rtol=rtol, atol=rtol)
    deviation = (expected[2] + EPS).sqrt() / scale.abs()
    deviation = deviation.repeat(y.shape[1] // len(scale))[:, None]
    size = float(g.abs().max()) * (1 + 2 * padding[0]) ** 2  # gradients of copies add up
    g_fused, g_plain = actual[3] * deviation, expected[3] * deviation  # by the normalised map
    differs = (g_fused - g_plain).abs() > rtol * (g_plain.abs() + size)
    assert differs.float().mean() <= 1e-4  # at the kink of ReLU, rounding decides
    for fused, plain in zip(actual[4:], expected[4:], strict=True):
        terms = size * (y.numel() / len(scale)) ** 0.5
        torch.testing.assert_close(fused, plain, rtol=rtol, atol=rtol * terms)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("torus", [False, True])
@pytest.mark.parametrize(
    ("batch", "orientations", "features", "height", "width", "border"),
    [(1, 4, 1, 1, 3, 0), (2, 4, 3, 5, 7, 1), (3, 8, 4, 6, 4, 2), (1, 1, 2, 3, 2, 4), (20, 8, 4, 33, 30, 2)],
)
def test_images_moments_and_gradients_agree_with_the_reference(
    batch, orientations, features, height, width, border, torus, dtype
):
    torch.manual_seed(0)
    inputs = make_inputs(batch, orientations, features, height * width, dtype)
    shape = (batch, orientations * features, height + 2 * border, width + 2 * border)
    assert_agree(inputs, (border, GridSpec(height, width, 8, torus, 1.0)), torch.randn(shape, dtype=dtype))


def test_maps_and_gradients_in_other_memory_layouts():
    torch.manual_seed(0)
    (y, scale, bias), padding = make_inputs(3, 4, 2, 20), (1, GridSpec(4, 5, 8, False, 1.0))
    gradients = [
        torch.randn(3, 6, 7, 8).permute(0, 3, 1, 2),
        torch.randn(3, 8, 6, 7),
        torch.randn(1, 8, 6, 1).expand(3, -1, -1, 7),
        torch.randn(()).expand(3, 8, 6, 7),
    ]
    for g in gradients:
        for maps in (y, y.contiguous(), torch.cat((y, y), dim=1)[:, 4:12], torch.cat((y, y), dim=2)[..., 10:30]):
            assert_agree((maps, scale, bias), padding, g)


def test_the_result_is_stored_pixel_by_pixel():
    with using("fused"):
        z, _, _ = orientation_norm(*make_inputs(2, 4, 2, 20), EPS, 1, GridSpec(4, 5, 8, False, 1.0))
    assert z.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("far", [1e4, -3e5])
def test_features_far_from_zero_keep_their_variance(far):
    y = pixel_by_pixel(far + torch.randn(4, 8, 900))
    with using("fused"):
        _, mean, variance = orientation_norm(y, torch.ones(2), torch.zeros(2), EPS, 0, GridSpec(30, 30, 8, False, 1.0))
    columns = y.double().unflatten(1, (4, 2))
    torch.testing.assert_close(mean, columns.mean((0, 1, 3)).float())
    torch.testing.assert_close(variance, columns.var((0, 1, 3), correction=0).float())


def test_the_variance_is_right_if_the_sampled_rows_are_far_from_the_mean():
    y = torch.randn(1, 64, 32 * 8, dtype=torch.float64).unflatten(2, (32, 8))
    y[:, :, ::2] += 1e6  # the rows from which the mean is first estimated
    y[:, :, ::2] *= 1e-12
    y[:, :, 0] += 1e5
    y = pixel_by_pixel(y.flatten(2).float())
    with using("fused"):
        _, mean, variance = orientation_norm(y, torch.ones(8), torch.zeros(8), EPS, 0, GridSpec(32, 8, 8, False, 1.0))
    columns = y.double().unflatten(1, (8, 8))
    torch.testing.assert_close(mean, columns.mean((0, 1, 3)).float())
    torch.testing.assert_close(variance, columns.var((0, 1, 3), correction=0).float())


def test_a_constant_feature_has_variance_zero():
    y = pixel_by_pixel(torch.full((2, 8, 48), 0.1))
    with using("fused"):
        z, mean, variance = orientation_norm(y, torch.ones(2), torch.ones(2), EPS, 1, GridSpec(6, 8, 8, False, 1.0))
    torch.testing.assert_close(mean, torch.full((2,), 0.1))
    assert (variance < 1e-14).all()
    torch.testing.assert_close(z, torch.ones_like(z), rtol=0, atol=1e-4)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_nan_or_infinity_affects_only_its_feature_as_in_the_reference(value):
    (y, scale, bias), padding = make_inputs(2, 4, 3, 20), (1, GridSpec(4, 5, 8, False, 1.0))
    y[1, 2, 7] = value  # feature 2 of orientation 0
    g = torch.ones(2, 12, 6, 7)
    actual, expected = (run(mode, (y, scale, bias), padding, g) for mode in ("fused", "plain"))
    assert torch.equal(actual[0].isnan(), expected[0].isnan())
    assert actual[0].isnan()[:, 2::3].all()
    assert not actual[0].isnan()[:, ::3].any()
    for fused, plain in zip(actual[1:4], expected[1:4], strict=True):
        assert torch.equal(fused.isfinite(), plain.isfinite())


def test_the_bits_do_not_depend_on_the_number_of_threads():
    inputs, before, results = make_inputs(5, 8, 4, 40 * 33), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            g = torch.linspace(-1, 1, 37).expand(5, 32, 44, 37)
            results.append(run("fused", inputs, (2, GridSpec(40, 33, 8, True, 1.0)), g))
    finally:
        torch.set_num_threads(before)
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)


def test_gradients_of_both_orders():
    torch.manual_seed(0)
    y, scale, bias = (x.requires_grad_() for x in make_inputs(2, 4, 2, 6, torch.float64))

    def function(*inputs):
        return orientation_norm(*inputs, EPS, 1, GridSpec(2, 3, 8, True, 1.0))[0]

    with using("fused"):
        assert gradcheck(function, (y, scale, bias))
        assert gradgradcheck(function, (y, scale, bias))
        (first,) = torch.autograd.grad(function(y.detach(), scale, bias).square().sum(), scale, create_graph=True)
        assert torch.autograd.grad(first.square().sum(), scale)[0].abs().sum() > 0


def test_half_precision_uses_the_reference():
    y, scale, bias = make_inputs(2, 4, 2, 20)
    z, mean, _ = orientation_norm(y.bfloat16(), scale, bias, EPS, 1, GridSpec(4, 5, 8, False, 1.0))
    assert (z.dtype, mean.dtype) == (torch.bfloat16, torch.float32)


def test_the_operators_pass_the_checks_of_pytorch():
    y, scale, bias = (x.requires_grad_() for x in make_inputs(2, 4, 2, 20))
    rest = (EPS, 1, 4, 5, 8, True, 1.0)
    torch.library.opcheck(torch.ops.tigranet.orientation_norm.default, (y, scale, bias, *rest))
    g = torch.rand(2, 6, 7, 8).permute(0, 3, 1, 2)
    inputs = (x.detach() for x in (y, scale, bias))
    args = (g, *inputs, torch.zeros(2), torch.ones(2), *rest)
    torch.library.opcheck(torch.ops.tigranet.orientation_norm_backward.default, args)
