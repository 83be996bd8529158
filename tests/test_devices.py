import pytest
import torch

from tigranet.devices import select_accelerator, select_device


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_auto_is_a_gpu_if_there_is_one(two_gpus):
    assert select_device() == torch.device("cuda")


def test_auto_is_the_cpu_otherwise(no_gpu):
    assert select_device("auto") == torch.device("cpu")


def test_a_device_is_taken_by_name(two_gpus):
    assert select_device("cuda:1") == torch.device("cuda", 1)
    assert select_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "cuda1", "", "xpu"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match=rf"cuda:N.*'{name}'"):
        select_device(name)


def test_a_gpu_that_does_not_exist_is_refused(two_gpus):
    with pytest.raises(ValueError, match=r"'cuda:2'.*2 GPUs, 0 to 1"):
        select_device("cuda:2")


def test_without_a_gpu_the_cpu_is_suggested(no_gpu, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for name in ("cuda", "mps"):
        with pytest.raises(ValueError, match=rf"'{name}'.*'cpu'"):
            select_device(name)


def test_the_accelerator_follows_the_device(two_gpus):
    assert select_accelerator() == "auto"
    assert select_accelerator("auto", "gpu") == "gpu"
    assert select_accelerator("cpu") == "cpu"
    assert select_accelerator("cuda", "gpu") == select_accelerator("cuda:0") == "gpu"


def test_a_contradiction_is_refused(two_gpus):
    for device, accelerator in (("cpu", "gpu"), ("cuda", "cpu")):
        with pytest.raises(ValueError, match=f"'{device}'.*'{accelerator}'"):
            select_accelerator(device, accelerator)


def test_training_on_another_gpu_is_refused_with_the_remedy(two_gpus):
    with pytest.raises(ValueError, match=r"'cuda:1'.*CUDA_VISIBLE_DEVICES=1"):
        select_accelerator("cuda:1")
