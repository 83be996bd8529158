"""oneDNN multiplies large matrices of float32 in one thread, and gives what PyTorch's product gives."""

import pytest
import torch

from tigranet import GridLaplacian
from tigranet.ops import mixed_chebyshev_sum, mixing, using
from tigranet.ops.cpu import matrix_product as module
from tigranet.ops.cpu.matrix_product import is_faster, matrix_product


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.skipif(module._linear() is None, reason="this PyTorch has no oneDNN")
class TestProduct:
    @pytest.mark.parametrize("shape", [(64, 64, 64), (192, 128, 1156), (65, 97, 1001)])
    def test_the_product_agrees_with_float64(self, shape):
        rows, terms, columns = shape
        a, b = torch.randn(rows, terms), torch.randn(terms, columns)
        assert is_faster(a, b)
        torch.testing.assert_close(matrix_product(a, b), (a.double() @ b.double()).float(), rtol=1e-4, atol=1e-4)

    def test_factors_in_other_memory_layouts(self):
        a, b = torch.randn(70, 160)[:, ::2], torch.randn(90, 80).t()
        product = matrix_product(a, b)
        assert product.is_contiguous()
        torch.testing.assert_close(product, a @ b, rtol=1e-4, atol=1e-4)

    def test_equal_images_have_equal_sums_wherever_they_are(self, monkeypatch):
        monkeypatch.setattr(mixing, "MAX_MIXTURE_BYTES", 0)
        grid, weights = GridLaplacian(9, 9, boundary="torus"), torch.randn(96, 64)
        y = torch.randn(1, 64, 81).repeat(5, 1, 1)
        with using("fused"):
            z = mixed_chebyshev_sum(weights, y, grid, 2)
        assert torch.equal(z, z[:1].expand_as(z))
        torch.testing.assert_close(z, mixed_chebyshev_sum.reference(weights, y, grid, 2), rtol=1e-4, atol=1e-3)

    def test_several_threads_use_the_product_that_they_share(self):
        torch.set_num_threads(2)
        assert not is_faster(torch.ones(64, 64), torch.ones(64, 64))


def test_small_products_and_other_types_are_left_to_pytorch():
    assert not is_faster(torch.ones(63, 64), torch.ones(64, 64))
    assert not is_faster(torch.ones(64, 63), torch.ones(63, 64))
    assert not is_faster(torch.ones(64, 64), torch.ones(2, 64, 63))
    assert not is_faster(torch.ones(64, 64).double(), torch.ones(64, 64).double())


def test_rounded_factors_are_left_to_pytorch():
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert not is_faster(torch.ones(64, 64), torch.ones(64, 64))
    finally:
        torch.set_float32_matmul_precision(precision)


def test_a_version_of_pytorch_without_the_operator(monkeypatch):
    monkeypatch.setattr(module, "_linear", lambda: None)
    assert not is_faster(torch.ones(64, 64), torch.ones(64, 64))
