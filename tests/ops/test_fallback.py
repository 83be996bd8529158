"""Fused kernels that cannot run: one warning with the reason, and the right answer by plain PyTorch."""

import os
import subprocess
import sys
from importlib import import_module

import pytest
import torch

from kernel_warnings import recorded_kernel_warnings
from tigranet import TIGraNet
from tigranet.ops import using
from tigranet.ops.fallback import KernelUnavailableError, warn_once

ARCHITECTURE = "MC[2,1]-OP[1]-SC[3,2]-DP[20]-S[2]-FC[4]"


def outputs_and_gradients(mode, seed=0):
    torch.manual_seed(seed)
    net, images = TIGraNet(ARCHITECTURE, 2).double(), torch.rand(3, 1, 6, 7, dtype=torch.float64, requires_grad=True)
    with using(mode):
        output = net(images)
        gradients = torch.autograd.grad(output.square().sum(), [images, *net.parameters()])
        with torch.no_grad():
            in_evaluation = net.eval()(images)
    return [output.detach(), in_evaluation, *gradients]


def assert_plain(actual):
    for mine, plain in zip(actual, outputs_and_gradients("plain"), strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-9, atol=1e-12)


def test_a_warning_is_given_once():
    with recorded_kernel_warnings() as messages:
        for reason in ("one reason", "one reason", "another reason"):
            warn_once(reason)
    assert messages == ["one reason", "another reason"]


def break_every_kernel(monkeypatch):
    """Let all fused CPU kernels raise, in the forward and in the backward pass."""

    def broken(*args):
        raise KernelUnavailableError("numba is broken")

    for name in ("statistics", "convolution", "pooling", "chebyshev", "oriented_products", "standardise"):
        module = import_module(f"tigranet.ops.cpu.{name}")
        for attribute, value in vars(module).copy().items():
            if hasattr(value, "__wrapped__") and not hasattr(value, "py_func"):
                monkeypatch.setattr(module, attribute, broken)


def test_kernels_that_fail_are_replaced_by_plain_pytorch_forward_and_backward(monkeypatch):
    break_every_kernel(monkeypatch)
    with recorded_kernel_warnings() as messages:
        actual = outputs_and_gradients("auto")
    (message,) = messages
    assert "plain PyTorch on cpu" in message
    assert "numba is broken" in message
    assert_plain(actual)


def test_kernels_that_fail_are_errors_where_fused_ones_are_required(monkeypatch):
    break_every_kernel(monkeypatch)
    with pytest.raises(KernelUnavailableError, match=r"'chebyshev_basis': numba is broken.*TIGRANET_KERNELS"):
        outputs_and_gradients("fused")


@pytest.mark.parametrize("operation", ["statistics", "convolution", "chebyshev", "oriented_products", "standardise"])
def test_a_kernel_that_fails_only_in_the_backward_pass_is_replaced(operation, monkeypatch):
    module = import_module(f"tigranet.ops.{operation}")
    operator = module.basis_op if operation == "chebyshev" else module.backward

    def broken(*args):
        raise KernelUnavailableError("out of registers")

    monkeypatch.setitem(operator._implementations, "cpu", broken)
    with recorded_kernel_warnings() as messages:
        actual = outputs_and_gradients("auto")
    (message,) = messages
    assert "out of registers" in message
    assert_plain(actual)


def test_numba_that_fails_to_compile_is_tried_once(monkeypatch):
    from tigranet.ops.cpu.compile import kernel

    @kernel
    def uncompilable(x):
        return x.no_such_attribute

    with pytest.raises(KernelUnavailableError, match=r"numba .* cannot compile"):
        uncompilable(1.0)
    monkeypatch.setattr("numba.core.dispatcher.Dispatcher.compile", None)
    with pytest.raises(KernelUnavailableError, match=r"numba .* cannot compile"):
        uncompilable(1.0)


def test_without_numba_it_is_plain_with_one_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "tigranet.ops.cpu.compile", raising=False)
    with recorded_kernel_warnings() as messages:
        actual = outputs_and_gradients("auto")
        with pytest.raises(KernelUnavailableError, match="numba cannot be imported"):
            outputs_and_gradients("fused")
    (message,) = messages
    assert "numba cannot be imported" in message
    assert "pip install numba" in message
    assert_plain(actual)


def test_plain_mode_neither_warns_nor_imports_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with recorded_kernel_warnings() as messages:
        outputs_and_gradients("plain")
    assert not messages


UNPRIVILEGED = """
import ctypes, os, sys, warnings

# Become "nobody", but keep the right to read all files: the interpreter may be in the home directory of root.
PR_SET_KEEPCAPS, CAP_DAC_READ_SEARCH, VERSION_3 = 8, 1 << 2, 0x20080522
libc = ctypes.CDLL(None)
libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
libc.capset((ctypes.c_uint32 * 2)(VERSION_3, 0), (ctypes.c_uint32 * 6)(CAP_DAC_READ_SEARCH, CAP_DAC_READ_SEARCH))

package, blocked = sys.argv[1:]
assert not os.access(package, os.W_OK), "the package must be read-only"
for folder in ("/", "/root", os.path.expanduser("~"), os.path.dirname(package)):
    assert not os.access(folder, os.W_OK)
if blocked:
    sys.modules["numba"] = None

import torch
from tigranet import GridLaplacian
from tigranet.layers import Coarsen
from tigranet.ops import using

grid, maps = GridLaplacian(5, 4), torch.rand(2, 1, 20, dtype=torch.float64, requires_grad=True)
results = []
with warnings.catch_warnings(record=True) as record:
    warnings.simplefilter("always")
    for mode in ("auto", "plain"):
        with using(mode):
            output = Coarsen()(maps, grid)  # the kernels that compile fastest of those with a gradient
            results.append([output, *torch.autograd.grad(output.square().sum(), maps)])
for fused, plain in zip(*results, strict=True):
    torch.testing.assert_close(fused, plain, rtol=1e-9, atol=1e-12)
for warning in record:
    print(type(warning.message).__name__, warning.message)
print("numba" in sys.modules and sys.modules["numba"] is not None)
"""

needs_another_user = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root can start a process of an unprivileged user"
)


def run_unprivileged(blocked="", **environment):
    """Run a layer as a user without a home directory, with a package that this user cannot write to."""
    package = os.path.dirname(sys.modules["tigranet"].__file__)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TIGRANET", "NUMBA", "XDG"))}
    return subprocess.run(
        [sys.executable, "-B", "-c", UNPRIVILEGED, package, blocked],
        env=inherited | {"HOME": "/nonexistent", "OMP_NUM_THREADS": "1"} | environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@needs_another_user
def test_an_unprivileged_user_without_a_home_has_kernels_and_no_warning(tmp_path):
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:3]:  # pytest's folders are private
        folder.chmod(folder.stat().st_mode | 0o055)
    process = run_unprivileged(TMPDIR=str(tmp_path))
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == ["True"]
    assert list(tmp_path.rglob("*.nbi")), "compiled kernels are stored in the temporary folder"


@needs_another_user
def test_a_cache_folder_that_cannot_be_written_gives_one_warning_and_the_right_answer():
    process = run_unprivileged(TIGRANET_CACHE="/nonexistent/cache")
    assert process.returncode == 0, process.stderr
    warning, uses_numba = process.stdout.splitlines()
    assert warning.startswith("SlowKernelsWarning")
    assert "/nonexistent" in warning
    assert "TIGRANET_CACHE" in warning
    assert uses_numba == "True"


@needs_another_user
def test_an_unprivileged_user_without_numba_gets_one_warning_and_the_right_answer():
    process = run_unprivileged(blocked="numba")
    assert process.returncode == 0, process.stderr
    warning, uses_numba = process.stdout.splitlines()
    assert "numba cannot be imported" in warning
    assert uses_numba == "False"
