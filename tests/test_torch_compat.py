"""Private PyTorch functions, present and missing."""

import pytest
import torch

from kernel_warnings import recorded_kernel_warnings
from tigranet import GridLaplacian, Statistics, torch_compat
from tigranet.ops import using
from tigranet.ops.fallback import KernelUnavailableError
from tigranet.torch_compat import MissingTorchAPIError, private

GRID = GridLaplacian(4, 5)


def remove(monkeypatch, *missing):
    """Simulate a version of PyTorch without some private names."""

    def without(module, name):
        if name in missing:
            raise MissingTorchAPIError(f"PyTorch 9.9 has no {module}.{name}")
        return private(module, name)

    monkeypatch.setattr(torch_compat, "private", without)


def run():
    z = torch.linspace(-1, 1, 40, dtype=torch.float64).sin().reshape(1, 2, 20).requires_grad_()
    phi = Statistics(3)(z, GRID)
    return phi.detach(), torch.autograd.grad(phi.sum(), z)[0]


def assert_right(actual):
    with using("plain"):
        expected = run()
    for mine, plain in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, plain)


def test_a_private_object_is_looked_up_by_its_name():
    assert private("torch", "nn.Module") is torch.nn.Module


@pytest.mark.parametrize(("module", "name"), [("torch", "_no_such_name"), ("torch._no_such_module", "name")])
def test_a_missing_object_is_an_error_that_names_it(module, name):
    with pytest.raises(MissingTorchAPIError, match=f"PyTorch {torch.__version__.split('+')[0]}.*{module}.{name}"):
        private(module, name)


def test_this_version_has_all_that_the_dispatch_needs():
    assert torch_compat.missing_for_dispatch() is None
    assert not torch_compat.in_function_transform()


@pytest.mark.parametrize("name", ["_C._functorch.peek_interpreter_stack", "_current_level"])
def test_without_a_name_that_the_dispatch_needs_it_is_plain_with_one_warning(name, monkeypatch):
    remove(monkeypatch, name)
    with recorded_kernel_warnings() as messages:
        actual = run()
        run()
        with using("fused"), pytest.raises(KernelUnavailableError, match=name):
            run()
    (message,) = messages
    assert "PyTorch 9.9 has no" in message
    assert name in message
    assert_right(actual)


@pytest.mark.parametrize("name", ["_C._get_tracing_state", "_get_current_dispatch_mode"])
def test_without_a_name_that_tells_observers_the_registered_operator_runs(name, monkeypatch):
    remove(monkeypatch, name)
    calls = []
    from tigranet.ops.statistics import forward

    registered = forward.registered
    monkeypatch.setattr(forward, "registered", lambda *args: calls.append(args) or registered(*args))
    actual = run()
    assert len(calls) == 1
    assert_right(actual)


def test_observers_are_noticed():
    tensors = [torch.rand(2), torch.nn.Parameter(torch.rand(2))]
    assert not torch_compat.is_observed(tensors)

    class Subclass(torch.Tensor):
        pass

    assert torch_compat.is_observed([*tensors, torch.rand(2).as_subclass(Subclass)])
    with torch.utils._python_dispatch.TorchDispatchMode():
        assert torch_compat.is_observed(tensors)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # from PyTorch itself
def test_function_transforms_are_noticed():
    found = []

    def function(x):
        found.append(torch_compat.in_function_transform())
        return x

    torch.func.vmap(function)(torch.rand(2))
    with torch.autograd.forward_ad.dual_level():
        function(torch.rand(2))
    function(torch.rand(2))
    assert found == [True, True, False]


@pytest.mark.parametrize("function", ["nvrtc_compile", "load_cuda_module", "cuda_driver_library"])
def test_a_missing_cuda_function_is_an_error_that_names_it(function, monkeypatch):
    remove(monkeypatch, "_nvrtc_compile", "_cuda_load_module", "_get_gpu_runtime_library")
    with pytest.raises(MissingTorchAPIError, match=r"torch\.cuda\._utils"):
        getattr(torch_compat, function)()


REMOVED = """
import warnings
import torch
import torch.autograd.forward_ad
del torch._C._functorch.peek_interpreter_stack
from tigranet import TIGraNet
from tigranet.ops import using

torch.manual_seed(0)
net, images, results = TIGraNet("MC[2,1]-OP[1]-SC[2,1]-DP[9]-S[1]", 2), torch.rand(2, 1, 5, 4), []
with warnings.catch_warnings(record=True) as record:
    warnings.simplefilter("always")
    for mode in ("auto", "plain"):
        with using(mode):
            results.append(torch.autograd.grad(net(images).square().sum(), list(net.parameters())))
for auto, plain in zip(*results, strict=True):
    assert torch.equal(auto, plain)
print([str(warning.message) for warning in record])
"""


def test_a_network_trains_in_a_pytorch_that_lacks_a_private_function(torch_process):
    process = torch_process.run(REMOVED)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("peek_interpreter_stack") == 1


def test_a_tensor_without_numbers_has_a_shape_and_refuses_to_be_computed_with():
    class Unreadable(torch.Tensor):
        __torch_function__ = torch_compat.no_function_override()

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise TypeError(str(function))

    empty = torch_compat.tensor_without_numbers(Unreadable, (3, 2), torch.float64)
    assert (type(empty), empty.shape, empty.dtype, empty.device.type) == (Unreadable, (3, 2), torch.float64, "cpu")
    with pytest.raises(TypeError, match="add"):
        torch.add(empty, 1)


def test_without_the_mark_of_subclasses_the_method_of_tensors_takes_its_place(monkeypatch):
    remove(monkeypatch, "_C._disabled_torch_function_impl", "Tensor._make_wrapper_subclass")
    assert torch_compat.no_function_override() == torch.Tensor.__torch_function__
    with pytest.raises(MissingTorchAPIError, match="_make_wrapper_subclass"):
        torch_compat.tensor_without_numbers(torch.Tensor, (1,), torch.float32)
