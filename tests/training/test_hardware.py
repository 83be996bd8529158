import pytest
import torch

from tigranet.training import Hardware


@pytest.mark.parametrize(
    ("precision", "device", "expected"),
    [("tf32", "cuda", "high"), ("32", "cuda", "highest"), ("tf32", "cpu", "highest")],
)
def test_tf32_is_set_while_a_gpu_trains_and_restored_afterwards(precision, device, expected):
    previous = torch.get_float32_matmul_precision()
    with Hardware(precision=precision).matrix_products(torch.device(device)):
        assert torch.get_float32_matmul_precision() == expected
        assert torch.backends.cudnn.allow_tf32 == (precision == "tf32")
    assert torch.get_float32_matmul_precision() == previous == "highest"
    assert torch.backends.cudnn.allow_tf32


@pytest.mark.skipif(torch.accelerator.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_an_error():
    with pytest.raises(ValueError, match=r"'gpu'.*'auto' or 'cpu'"):
        Hardware("gpu").for_trainer()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": "8"}, "precision .*tf32, 32, bf16, 16.* got '8'"),
        ({"accelerator": "tpu"}, "accelerator .*auto, cpu, gpu.* got 'tpu'"),
        ({"devices": 0}, "devices .*1.* got 0"),
        ({"nodes": 0}, "nodes .*1.* got 0"),
    ],
)
def test_invalid_values_are_errors(arguments, message, without_shape_checks):
    with pytest.raises(ValueError, match=message):
        Hardware(**arguments)
