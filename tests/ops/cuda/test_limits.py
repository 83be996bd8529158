"""The limits of a device come from the driver, or from PyTorch where the driver does not tell."""

import ctypes
from types import SimpleNamespace

import pytest
import torch

from tigranet import torch_compat
from tigranet.ops.cuda import limits
from tigranet.ops.cuda.limits import SMALLEST_LIMITS, DeviceLimits, device_limits

DEVICE = torch.device("cuda", 0)


class Driver:
    """A CUDA driver that knows some attributes."""

    def __init__(self, attributes):
        self.attributes = attributes

    def cuDeviceGet(self, device, index):
        device._obj.value = 10 + index
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        assert isinstance(device, ctypes.c_int)
        assert device.value == 10
        if attribute not in self.attributes:
            return 1
        value._obj.value = self.attributes[attribute]
        return 0


@pytest.fixture
def read(monkeypatch):
    """Read the limits of a device with this driver and these properties."""

    def read(driver, **properties):
        limits._read_limits.cache_clear()
        monkeypatch.setattr(torch_compat, "cuda_driver_library", driver)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**properties))
        return device_limits(DEVICE)

    yield read
    limits._read_limits.cache_clear()


def test_the_driver_tells_the_limits(read):
    assert read(lambda: Driver({97: 101376, 1: 1024, 12: 65536})) == DeviceLimits(99 * 1024, 1024, 65536)


def test_pytorch_tells_what_the_driver_does_not(read):
    driver = Driver({1: 512})
    actual = read(lambda: driver, shared_memory_per_block_optin=65536, shared_memory_per_block=49152, regs_per_block=1)
    assert actual == DeviceLimits(64 * 1024, 512, 1)


@pytest.mark.parametrize("error", [OSError("no libcuda.so.1"), torch_compat.MissingTorchAPIError("no such function")])
def test_without_a_driver_and_in_old_versions_of_pytorch_the_smallest_limits_hold(read, error):
    def driver():
        raise error

    assert read(driver) == SMALLEST_LIMITS
    assert read(driver, shared_memory_per_block=32768).shared_memory_per_block == 32768


def test_the_limits_are_read_once_per_device(read, monkeypatch):
    first = read(lambda: Driver({97: 101376, 1: 1024, 12: 65536}))
    monkeypatch.setattr(torch_compat, "cuda_driver_library", None)
    assert device_limits(DEVICE) is first


@pytest.mark.gpu
def test_a_real_device_has_at_least_the_smallest_limits():
    actual = device_limits(torch.rand(1, device="cuda").device)
    assert all(limit >= smallest for limit, smallest in zip(actual, SMALLEST_LIMITS, strict=True))
