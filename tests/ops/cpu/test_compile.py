"""Compiled kernels are stored, found again, and compiled anew when anything has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import tigranet
from kernel_warnings import recorded_kernel_warnings
from tigranet.ops.cpu import compile as compilation

STATISTICS = """
import hashlib
import torch
from tigranet import GridLaplacian, Statistics

torch.manual_seed(0)
maps = torch.rand(6, 2, 156, requires_grad=True)
values = Statistics(3)(maps, GridLaplacian(12, 13))  # sums whose order the compiler chooses
gradient, = torch.autograd.grad(values.square().sum(), maps)
print(hashlib.sha256(values.detach().numpy().tobytes() + gradient.numpy().tobytes()).hexdigest())
"""

SMALL = """
import torch
from tigranet import DynamicPool
print(DynamicPool(2)(torch.tensor([[[1.0, 3.0, 2.0]]])).tolist())
"""


def run(script, **environment):
    env = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout


def digests(folder):
    return sorted(path.name for path in folder.iterdir())


def test_new_code_and_code_from_the_cache_give_the_same_bits(tmp_path, warm_process):
    environment = {"TIGRANET_KERNELS": "fused", "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (warm_process.run(STATISTICS, environment=environment) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout != ""
    (name,) = digests(tmp_path)
    assert name == f"tigranet-{compilation.source_digest()}"
    assert any(tmp_path.rglob("*.nbi"))


def test_without_numbas_variable_the_code_is_in_the_cache_folder_of_tigranet(tmp_path, warm_process):
    environment = {"TIGRANET_KERNELS": "fused", "NUMBA_CACHE_DIR": "", "TIGRANET_CACHE": str(tmp_path)}
    process = warm_process.run(SMALL, environment=environment)
    assert process.returncode == 0, process.stderr
    assert digests(tmp_path / "numba") == [compilation.source_digest()]


def test_a_change_in_any_kernel_file_is_noticed(tmp_path):
    """A copy of the package, where one file changes that the called kernel's file only imports."""
    package, cache = tmp_path / "tigranet", tmp_path / "cache"
    shutil.copytree(Path(tigranet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "weights"))
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}
    (tmp_path / "caller.py").write_text("""
from tigranet.ops.cpu.compile import kernel
from tigranet.ops.cpu.stencil import multiply

@kernel
def product(a, b, out):
    multiply(a, b, out)
""")
    script = """
import numpy as np
from caller import product
out = np.empty(1)
product(np.full(1, 3.0), np.full(1, 2.0), out)
print(out[0])
"""
    assert run(script, **environment) == "6.0\n"
    source = package / "ops" / "cpu" / "stencil.py"
    source.write_text(source.read_text().replace("a[i] * a.dtype.type(b[i])", "a[i] + a.dtype.type(b[i])"))
    assert run(script, **environment) == "5.0\n"
    assert len(digests(cache)) == 2


def test_only_kernels_are_stored(cache_in):
    part = compilation.compile_exact(double)

    def twice(x):
        return part(part(x))

    assert compilation.kernel(twice)(1.5) == 6.0
    assert list(cache_in.rglob("*.nbi"))
    assert not list(cache_in.rglob("*.double-*"))


def test_old_versions_beyond_the_three_newest_are_removed(tmp_path):
    names = [f"{i:016x}" for i in range(5)]
    for age, name in enumerate(names):
        (tmp_path / f"tigranet-{name}").mkdir()
        os.utime(tmp_path / f"tigranet-{name}", (1_000_000 - age, 1_000_000 - age))
    others = ["tigranet-notes", "cpu_0123456789abcdef", "tigranet-zzzzzzzzzzzzzzzz"]
    for name in others:
        (tmp_path / name).mkdir()
    compilation.remove_old_versions(tmp_path, "tigranet-", 16)
    assert digests(tmp_path) == sorted([f"tigranet-{name}" for name in names[:3]] + others)


def test_numbas_configuration_is_left_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "the user's")
    compilation.kernel(lambda x: x)
    assert numba.config.CACHE_DIR == "the user's"


def double(x):
    return x + x


@pytest.fixture
def cache_in(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compilation.kernel_cache_folder.cache_clear()
    yield tmp_path
    compilation.kernel_cache_folder.cache_clear()


def test_a_folder_that_cannot_be_created_gives_a_warning_and_code_without_a_cache(cache_in, monkeypatch):
    (cache_in / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache_in / "file"))
    with recorded_kernel_warnings() as messages:
        assert compilation.kernel(double)(2) == 4
        assert compilation.kernel(double)(3.0) == 6.0
    (message,) = messages
    assert str(cache_in / "file") in message
    assert "TIGRANET_CACHE" in message


def test_a_full_disk_gives_a_warning_and_the_right_answer(cache_in, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    with recorded_kernel_warnings() as messages:
        assert compilation.kernel(double)(2) == 4
        assert compilation.kernel(double)(2.0) == 4.0
    (message,) = messages
    assert "No space left on device" in message


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_files_are_replaced(suffix, cache_in):
    assert compilation.kernel(double)(2) == 4
    (path,) = cache_in.rglob(f"*.double-*.{suffix}")
    path.write_bytes(b"damaged")
    with recorded_kernel_warnings() as messages:
        assert compilation.kernel(double)(2) == 4
    (message,) = messages
    assert "cannot be read" in message
    contents = path.read_bytes()
    assert contents != b"damaged"
    with recorded_kernel_warnings() as messages:
        assert compilation.kernel(double)(2) == 4
    assert not messages
    assert path.read_bytes() == contents


def test_sums_may_be_reassociated_only_where_that_is_asked_for():
    values = np.array([1e16, 1.0, -1e16, 1.0] * 64)

    def total(x):
        result = 0.0
        for i in range(len(x)):
            result += x[i]
        return result

    assert compilation.kernel(total)(values) == sum(values.tolist())
    assert "fastmath" not in compilation.compile_exact(total).targetoptions
    assert compilation.compile_reassociated(total).targetoptions["fastmath"] == {"reassoc", "nsz"}
