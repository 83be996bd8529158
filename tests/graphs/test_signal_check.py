import pytest
import torch

from tigranet.graphs.signal_check import check_node_set, check_signal


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_signals_of_any_batch_shape_are_accepted(dtype):
    for shape in [(5,), (2, 5), (0, 3, 5)]:
        check_signal(torch.zeros(shape, dtype=dtype), 5, "graph")
        check_node_set(torch.zeros(shape, dtype=torch.bool), 5, "graph")


@pytest.mark.parametrize("shape", [(), (4,), (5, 4)])
def test_errors_name_the_reader_and_the_shape(shape):
    for check, dtype in ((check_signal, torch.float32), (check_node_set, torch.bool)):
        with pytest.raises(ValueError, match=r"'graph' reads 5 values") as error:
            check(torch.zeros(shape, dtype=dtype), 5, "graph")
        assert str(shape) in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_errors_name_the_dtype_of_a_signal(dtype):
    with pytest.raises(TypeError, match=rf"float32 or float64.*{dtype}"):
        check_signal(torch.zeros(5, dtype=dtype), 5, "graph")


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_errors_name_the_dtype_of_a_set(dtype):
    with pytest.raises(TypeError, match=rf"booleans.*{dtype}"):
        check_node_set(torch.zeros(5, dtype=dtype), 5, "graph")
