import pytest
import torch

from tigranet.graphs.device_constant import DeviceConstant


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_each_conversion_is_computed_once(dtype, layout):
    tensor = torch.rand(3, 4, dtype=torch.float64)
    constant, y = DeviceConstant(tensor.to_sparse() if layout == "sparse" else tensor), torch.zeros(2, dtype=dtype)
    assert constant.like(y).dtype == dtype
    assert constant.like(y) is constant.like(y)
    torch.testing.assert_close(constant.like(y).to_dense().double(), tensor, rtol=1e-6, atol=0)


def test_the_result_is_a_copy():
    tensor = torch.ones(2, dtype=torch.float64)
    constant = DeviceConstant(tensor)
    assert constant.like(tensor).data_ptr() != tensor.data_ptr()


def test_a_conversion_in_inference_mode_can_be_used_with_gradients():
    constant, y = DeviceConstant(torch.ones(2, dtype=torch.float64)), torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        constant.like(y)
    (constant.like(y) * y).sum().backward()
    assert torch.equal(y.grad, torch.ones(2))


def test_nothing_is_kept_while_a_compiler_traces(monkeypatch):
    constant, y = DeviceConstant(torch.ones(2, dtype=torch.float64)), torch.zeros(2)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert constant.like(y) is not constant.like(y)
