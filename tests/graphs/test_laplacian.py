"""Properties of every Laplacian."""

import pytest
import torch

from oracles import some_laplacians
from tigranet import GridLaplacian

LAPLACIANS = some_laplacians()


@pytest.fixture(params=LAPLACIANS.values(), ids=LAPLACIANS.keys())
def laplacian(request):
    return request.param


def test_the_matrix_is_symmetric_with_spectrum_in_0_2_and_a_zero_eigenvalue(laplacian):
    dense = laplacian.to_dense()
    torch.testing.assert_close(dense, dense.T, rtol=0, atol=1e-15)
    lam = torch.linalg.eigvalsh(dense)
    assert lam[0].abs() < 1e-12
    assert lam[-1] < 2 + 1e-12


def test_a_call_multiplies_by_the_matrix_along_the_last_axis(laplacian):
    y = torch.rand(2, 3, laplacian.num_nodes, dtype=torch.float64)
    torch.testing.assert_close(laplacian(y), y @ laplacian.to_dense(), rtol=0, atol=1e-14)
    torch.testing.assert_close(laplacian.shifted(y), laplacian(y) - y, rtol=0, atol=1e-15)
    torch.testing.assert_close(laplacian(y[0, 0]), laplacian(y)[0, 0], rtol=0, atol=1e-15)


def test_the_result_does_not_depend_on_the_memory_layout(laplacian):
    y = torch.rand(laplacian.num_nodes, 3, dtype=torch.float64).T
    assert not y.is_contiguous()
    torch.testing.assert_close(laplacian(y), laplacian(y.contiguous()), rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_result_has_the_dtype_of_the_signal(laplacian, dtype):
    y = torch.rand(laplacian.num_nodes, dtype=torch.float64)
    result = laplacian(y.to(dtype))
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), laplacian(y), rtol=0, atol=1e-6 if dtype == torch.float32 else 0)


def test_the_backward_pass_applies_the_same_operator(laplacian):
    y = torch.rand(2, laplacian.num_nodes, dtype=torch.float64, requires_grad=True)
    g = torch.rand_like(y)
    (gradient,) = torch.autograd.grad(laplacian(y), y, g)
    torch.testing.assert_close(gradient, laplacian(g), rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(laplacian, y)


def test_gradients_are_recorded_after_a_use_in_inference_mode(laplacian):
    with torch.inference_mode():
        laplacian(torch.rand(laplacian.num_nodes))
    y = torch.rand(laplacian.num_nodes, requires_grad=True)
    laplacian(y).sum().backward()
    assert y.grad is not None


def test_errors_name_the_shape_and_the_dtype(laplacian, without_shape_checks):
    with pytest.raises(ValueError, match=rf"{laplacian.num_nodes} values .*\(2, 3\)"):
        laplacian(torch.rand(2, 3))
    with pytest.raises(TypeError, match=r"float32 or float64.*torch\.int64.*\.float\(\)"):
        laplacian(torch.ones(laplacian.num_nodes, dtype=torch.int64))


def test_the_carre_du_champ_is_a_sum_over_edges(laplacian):
    """Checks 1/2 sum_j w_ij (f_i - f_j)(g_i - g_j), the identity in the docstring, with the dense matrix."""
    f, g = torch.randn(2, 3, laplacian.num_nodes, dtype=torch.float64)
    w = torch.eye(laplacian.num_nodes, dtype=torch.float64) - laplacian.to_dense()
    expected = (w * (f[:, :, None] - f[:, None]) * (g[:, :, None] - g[:, None])).sum(-1) / 2
    torch.testing.assert_close(laplacian.carre_du_champ(f, g), expected, rtol=0, atol=1e-13)
    assert (laplacian.carre_du_champ(f, f) > -1e-13).all()


def test_constants_have_no_gradient_anywhere(laplacian):
    f = torch.randn(laplacian.num_nodes, dtype=torch.float64)
    assert laplacian.carre_du_champ(f, torch.ones_like(f)).abs().max() < 1e-14


def test_on_the_grid_the_carre_du_champ_of_linear_images_is_three_eighths_of_the_product_of_gradients():
    """Away from the border: the 8 differences of weight 1/8 add up to (2 + 4) / 16 along each axis."""
    y, x = torch.meshgrid(torch.arange(6.0), torch.arange(7.0), indexing="ij")
    actual = GridLaplacian(6, 7).carre_du_champ((2 * x - y).flatten().double(), (x + 5 * y).flatten().double())
    expected = torch.full((2, 3), 3 / 8 * (2 * 1 + -1 * 5), dtype=torch.float64)
    torch.testing.assert_close(actual.reshape(6, 7)[2:-2, 2:-2], expected, rtol=0, atol=1e-12)
