import pytest
import torch

from tigranet import TIGraNet
from tigranet.training import Hardware, hardware


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
        ({"precision": "8"}, "precision .*auto, tf32, 32, bf16, 16.* got '8'"),
        ({"accelerator": "tpu"}, "accelerator .*auto, cpu, gpu.* got 'tpu'"),
        ({"devices": 0}, "devices .*1.* got 0"),
        ({"nodes": 0}, "nodes .*1.* got 0"),
    ],
)
def test_invalid_values_are_errors(arguments, message, without_shape_checks):
    with pytest.raises(ValueError, match=message):
        Hardware(**arguments)


@pytest.mark.parametrize(
    ("network", "gpu", "devices_with_bf16", "expected"),
    [
        ("LC[1,3,4]-MO[2]-S[0]", True, {"cuda"}, "bf16"),
        ("LC[1,3,4]-MO[2]-S[0]", True, {"cpu"}, "tf32"),  # an old GPU
        ("LC[1,3,4]-MO[2]-S[0]", False, {"cpu", "cuda"}, "tf32"),
        ("MC[2,1]-S[0]", True, {"cpu", "cuda"}, "tf32"),  # its graph operations use single precision anyway
    ],
)
def test_group_convolutions_are_trained_in_bf16_by_default_on_gpus_that_have_it(
    network, gpu, devices_with_bf16, expected, monkeypatch
):
    monkeypatch.setattr(hardware, "trains_on_cuda", lambda accelerator: gpu)
    monkeypatch.setattr(hardware, "computes_with", lambda device, dtype: device.type in devices_with_bf16)
    assert Hardware().for_network(TIGraNet(network, 2)).precision == expected
    assert Hardware(precision="32").for_network(TIGraNet(network, 2)).precision == "32"
