import pytest
import torch
from torch.autograd import gradcheck

from tigranet import GridLaplacian
from tigranet.layers import MirrorProduct, OrientedProduct
from tigranet.testing import SQUARE, blobs, equivariance_error, on_nodes, torus_shifts

KINDS = [OrientedProduct, MirrorProduct]


def in_evaluation_mode(layer, y, laplacian):
    layer(y, laplacian)
    return layer.eval()


# the layer computes what its docstring defines


def test_products_of_quadratic_images_are_the_closed_form():
    y, x = torch.meshgrid(torch.arange(9.0).double(), torch.arange(11.0).double(), indexing="ij")
    f, g = 1 + x - 2 * y + 0.5 * x**2 + 3 * x * y, 2 * x + y - x**2 + x * y + 0.25 * y**2
    df = torch.complex(1 + x + 3 * y, -2 + 3 * x)
    dg = torch.complex(2 - 2 * x + y, 1 + x + 0.5 * y)
    d2f, d2g = torch.tensor(1 - 0 + 2j * 3), torch.tensor(-2 - 0.5 + 2j * 1)
    first, second = df * dg.conj(), (d2f * d2g.conj()).expand(9, 11)
    layer = OrientedProduct(2, 1).double()
    actual = layer.products(torch.stack((f.flatten(), g.flatten()))[None], GridLaplacian(9, 11))
    for part, expected in zip(actual[0], (first.real, first.imag, second.real, second.imag), strict=True):
        torch.testing.assert_close(part.reshape(9, 11)[2:-2, 2:-2], expected[2:-2, 2:-2].double(), rtol=0, atol=1e-10)


def test_the_maps_come_first_then_the_standardised_products_kind_after_kind():
    layer, y, grid = OrientedProduct(3, 2).double(), torch.rand(4, 3, 20, dtype=torch.float64), GridLaplacian(4, 5)
    result = layer(y, grid)
    assert torch.equal(result[:, :3], y)
    mixtures = torch.einsum("pk,bkn->bpn", layer.mixtures, y)
    products = layer.products(mixtures, grid)
    expected = torch.nn.functional.batch_norm(products, None, None, training=True, eps=1e-5)
    expected = expected / (1 + expected.abs() / 8).sqrt()
    torch.testing.assert_close(result[:, 3:], expected)
    omega = torch.rand(4, 1, 20) < 0.5
    torch.testing.assert_close(layer(y, grid, omega), result * omega)


# the layer has the symmetry that its docstring claims


@pytest.mark.parametrize("boundary", ["free", "torus"])
def test_products_rotate_with_the_image_and_reflections_change_a_sign_bit_for_bit(boundary):
    grid, layer, y = GridLaplacian(9, 9, boundary=boundary), OrientedProduct(3, 3), torch.randn(2, 6, 81)

    def products(y):
        return layer.products(y, grid).unflatten(1, (4, 3))

    for name, move in SQUARE.items():
        sign = torch.tensor([1.0, -1, 1, -1] if "reflected" in name else [1.0, 1, 1, 1]).reshape(4, 1, 1)
        moved = on_nodes(move, 9, 9)
        assert equivariance_error(products, y, moved, lambda z, s=sign, m=moved: s * m(z)) == 0
    if boundary == "torus":
        for shift in list(torus_shifts(9, 9))[1::7]:
            assert equivariance_error(products, y, on_nodes(shift, 9, 9)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_layer_rotates_with_the_image_up_to_rounding(kind):
    grid, y = GridLaplacian(9, 9), torch.rand(3, 4, 81)
    layer = in_evaluation_mode(kind(4, 3), y, grid)
    for name, move in SQUARE.items():
        error = equivariance_error(lambda y: layer(y, grid), y, on_nodes(move, 9, 9))
        assert (error < 1e-6) == (kind is MirrorProduct or "reflected" not in name), name


def test_products_of_smooth_images_hardly_change_for_any_angle():
    """Means over the image of squared products, which are constant except for the anisotropy of the stencil."""
    layer, grid = OrientedProduct(2, 4), GridLaplacian(28, 28)

    def means(degrees):
        f, g = (blobs(degrees, seed=seed).flatten(2) for seed in (1, 2))
        return layer.products(torch.cat((f, g), 1), grid).square().mean(-1)

    upright = means(0.0)
    for degrees in (10, 23, 37, 45, 71):
        torch.testing.assert_close(means(float(degrees)), upright, rtol=0.02, atol=0)


# the layer has the right gradients


@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind):
    layer, grid = kind(2, 2).double(), GridLaplacian(3, 4)
    y = torch.rand(2, 2, 12, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda y, mixtures: torch.func.functional_call(layer, {"mixtures": mixtures}, (y, grid)), (y, layer.mixtures)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_gradient(kind):
    layer = kind(3, 2)
    layer(torch.rand(4, 3, 30), GridLaplacian(5, 6)).pow(3).sum().backward()
    assert (layer.mixtures.grad != 0).all()


# the layer is a well-behaved module


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(4, 5), (1, 7), (2, 2), (3, 1), (9, 4)])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_the_layer_runs_at_every_size(kind, size, batch):
    for boundary in ("free", "torus"):
        grid, layer = GridLaplacian(*size, boundary=boundary), kind(2, 3)
        for training in (True, False):
            result = layer.train(training)(torch.rand(batch, 2, grid.num_nodes), grid)
            assert result.shape == (batch, layer.out_maps, grid.num_nodes)
            assert torch.isfinite(result).all()


def test_autocast_keeps_the_maps_in_float32():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert OrientedProduct(3, 2)(torch.rand(2, 3, 20), GridLaplacian(4, 5)).dtype == torch.float32


def test_repr():
    assert "3, pairs=2" in repr(OrientedProduct(3, 2))
    assert OrientedProduct(3, 2).out_maps == 11
