"""NVRTC and the CUDA driver as fakes, so that what happens when they fail can be tested without a GPU."""

import contextlib
from types import SimpleNamespace

import torch

from tigranet import torch_compat
from tigranet.ops import cuda, fallback
from tigranet.ops.cuda import nvrtc


class FakeCUDA:
    """NVRTC, the driver and the functions of PyTorch that lead to them. Attributes say what fails."""

    def __init__(self):
        self.compilations, self.launches, self.loaded = [], [], []
        self.compile_error = self.launch_error = None
        self.invalid_binaries = set()

    def compile(self, source, name, capability, nvcc_options):
        self.compilations.append((name, tuple(nvcc_options)))
        if self.compile_error is not None:
            raise self.compile_error
        return f"cubin of {name}, number {len(self.compilations)}".encode(), name

    def load(self, binary, names):
        if binary in self.invalid_binaries:
            raise RuntimeError("CUDA error: device kernel image is invalid")
        self.loaded.append(binary)
        return {name: SimpleNamespace(func=1234) for name in names}

    def driver(self):
        class Launch:  # an object, because the driver's functions take attributes
            def __call__(launch, function, *args):
                self.launches.append((function, args[:7]))
                return self.launch_error or 0

        def error_string(error, text):
            text._obj.value = b"too many resources requested for launch"
            return 0

        return SimpleNamespace(cuLaunchKernel=Launch(), cuGetErrorString=error_string, cuFuncSetAttribute=lambda *_: 0)


class FakeDevice(contextlib.nullcontext):
    """A context that selects no device."""


def install(fake, monkeypatch, folder):
    """Let tigranet use the fake, with ``folder`` as its cache."""
    monkeypatch.setenv("TIGRANET_CACHE", str(folder))
    monkeypatch.setattr(torch_compat, "nvrtc_compile", lambda: fake.compile)
    monkeypatch.setattr(torch_compat, "load_cuda_module", lambda: fake.load)
    monkeypatch.setattr(torch_compat, "cuda_driver_library", fake.driver)
    monkeypatch.setattr(nvrtc, "_initialise_in_this_thread", lambda index: None)
    monkeypatch.setattr(torch.cuda, "device", FakeDevice)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=7))


def remove_from_memory():
    """Forget kernels, failures and warnings, as a new process would."""
    nvrtc.kernel.cache_clear()
    nvrtc.forget_failures()
    nvrtc._driver.cache_clear()
    cuda._missing_interface.cache_clear()
    fallback._warned.clear()
