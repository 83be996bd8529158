"""Compile, store, load and launch without a GPU: PyTorch's functions are replaced by fakes.

Whatever is missing or fails gives a :class:`KernelUnavailableError` with the reason, once and for all.
"""

import os
import stat

import pytest
import torch

from fake_cuda import FakeCUDA, install, remove_from_memory
from tigranet import torch_compat
from tigranet.ops import cuda
from tigranet.ops.cuda import nvrtc
from tigranet.ops.fallback import KernelUnavailableError, SlowKernelsWarning

DEVICE = torch.device("cuda", 0)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    fake = FakeCUDA()
    install(fake, monkeypatch, tmp_path / "cache")
    remove_from_memory()
    yield fake
    remove_from_memory()


def load(name="step", shared=0):
    return nvrtc.kernel(name, "source", (("H", 3),), shared, True, DEVICE)


def test_a_kernel_is_compiled_once_and_loaded_from_disk_by_the_next_process(fake, tmp_path):
    assert load().name == "step"
    load()
    assert fake.compilations == [("step", ("-DH=3", "--fmad=false"))]
    (path,) = (tmp_path / "cache").iterdir()
    assert path.suffix == ".cubin"
    remove_from_memory()
    load()
    assert len(fake.compilations) == 1
    assert fake.loaded == [b"cubin of step, number 1"] * 2


def test_all_kernels_of_a_source_are_compiled_together(fake, tmp_path):
    load("step")
    load("combine")
    assert len(fake.compilations) == len(list((tmp_path / "cache").iterdir())) == 1
    assert len(fake.loaded) == 2


def test_other_macros_make_another_kernel(fake):
    load()
    nvrtc.kernel("step", "source", (("H", 4),), 0, True, DEVICE)
    nvrtc.kernel("step", "source", (("H", 4),), 0, False, DEVICE)
    assert [options for _, options in fake.compilations] == [
        ("-DH=3", "--fmad=false"),
        ("-DH=4", "--fmad=false"),
        ("-DH=4",),
    ]


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:-5], lambda content: content[:10], lambda content: b"", lambda content: b"x" * 99],
)
def test_a_damaged_file_is_replaced_with_one_warning(fake, tmp_path, damage):
    load()
    (path,) = (tmp_path / "cache").iterdir()
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    remove_from_memory()
    with pytest.warns(SlowKernelsWarning, match=f"{path.name}.* is damaged"):
        load()
    assert len(fake.compilations) == 2
    assert nvrtc.read_binary(path) == fake.loaded[-1] == b"cubin of step, number 2"
    remove_from_memory()
    load()
    assert len(fake.compilations) == 2


def test_an_intact_file_that_the_driver_rejects_is_replaced(fake, tmp_path):
    load()
    fake.invalid_binaries.add(b"cubin of step, number 1")
    remove_from_memory()
    with pytest.warns(SlowKernelsWarning, match="kernel image is invalid"):
        load()
    (path,) = (tmp_path / "cache").iterdir()
    assert nvrtc.read_binary(path) == b"cubin of step, number 2"


def test_a_new_binary_that_the_driver_rejects_is_not_stored(fake, tmp_path):
    fake.invalid_binaries.add(b"cubin of step, number 1")
    with pytest.raises(KernelUnavailableError, match=r"'step'.*kernel image is invalid"):
        load()
    assert not (tmp_path / "cache").exists()


def test_without_nvrtc_nothing_is_compiled_and_the_reason_is_remembered(fake):
    fake.compile_error = OSError("Could not find any NVRTC library")
    assert cuda.why_unavailable(DEVICE) is None
    for name in ("step", "step", "other"):
        with pytest.raises(KernelUnavailableError, match=r"NVRTC.*Could not find any NVRTC library"):
            load(name)
    assert len(fake.compilations) == 1
    assert "Could not find any NVRTC library" in cuda.why_unavailable(DEVICE)


@pytest.mark.parametrize("error", [ImportError("No module named 'setuptools'"), TypeError("unexpected keyword")])
def test_a_compiler_that_pytorch_cannot_call_is_like_none(fake, error):
    fake.compile_error = error
    for name in ("step", "other"):
        with pytest.raises(KernelUnavailableError, match=str(error)):
            load(name)
    assert len(fake.compilations) == 1


def test_a_kernel_on_disk_needs_no_nvrtc(fake):
    load()
    remove_from_memory()
    fake.compile_error = OSError("Could not find any NVRTC library")
    load()
    assert cuda.why_unavailable(DEVICE) is None


def test_a_compile_error_is_remembered_for_that_kernel_only(fake):
    fake.compile_error = RuntimeError("Kernel compilation failed:\nstep.cu(3): error: expected a ';'\n" + "x" * 1000)
    for _ in range(2):
        with pytest.raises(KernelUnavailableError, match=r"'step'.*expected a ';'") as error:
            load()
        assert len(str(error.value)) < 700
    assert len(fake.compilations) == 1
    fake.compile_error = None
    load("other")
    assert cuda.why_unavailable(DEVICE) is None


@pytest.mark.parametrize("name", ["nvrtc_compile", "load_cuda_module", "cuda_driver_library"])
def test_a_private_function_that_pytorch_lacks_makes_the_kernels_unavailable(fake, monkeypatch, name):
    def missing():
        raise torch_compat.MissingTorchAPIError(f"PyTorch 9.9 has no {name}")

    monkeypatch.setattr(torch_compat, name, missing)
    assert cuda.why_unavailable(DEVICE) == f"PyTorch 9.9 has no {name}"
    with pytest.raises(KernelUnavailableError, match=f"PyTorch 9.9 has no {name}"):
        nvrtc.launch(load(shared=50_000), (1, 1, 1), (32, 1, 1), [], DEVICE)


def test_a_missing_load_function_is_not_taken_for_a_damaged_file(fake, monkeypatch):
    load()
    remove_from_memory()

    def missing():
        raise torch_compat.MissingTorchAPIError("PyTorch 9.9 has no _cuda_load_module")

    monkeypatch.setattr(torch_compat, "load_cuda_module", missing)
    with pytest.raises(KernelUnavailableError, match="has no _cuda_load_module"):
        load()
    assert len(fake.compilations) == 1


def test_a_kernel_object_that_another_version_of_pytorch_changed_is_unavailable(fake, monkeypatch):
    monkeypatch.setattr(torch_compat, "load_cuda_module", lambda: lambda binary, names: dict.fromkeys(names))
    with pytest.raises(KernelUnavailableError, match=r"'step' cannot be loaded.*func"):
        load()


def test_lack_of_memory_is_not_remembered(fake, monkeypatch):
    def out_of_memory(index):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "_initialise_in_this_thread", out_of_memory)
        with pytest.raises(torch.OutOfMemoryError):
            load()
    assert load().name == "step"


def test_while_a_cuda_graph_is_recorded_no_failure_is_remembered(fake, monkeypatch):
    fake.invalid_binaries.add(b"cubin of step, number 1")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        with pytest.raises(RuntimeError, match="image is invalid") as error:
            load()
    assert not isinstance(error.value, KernelUnavailableError)
    assert load().name == "step"


def test_without_a_driver_library_the_kernels_are_unavailable(fake, monkeypatch):
    def missing():
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(torch_compat, "cuda_driver_library", missing)
    assert "libcuda.so.1" in cuda.why_unavailable(DEVICE)


def test_why_the_kernels_are_unavailable_is_looked_up_once_per_device(fake, monkeypatch):
    assert cuda.why_unavailable(DEVICE) is None
    monkeypatch.setattr(torch_compat, "nvrtc_compile", None)
    assert cuda.why_unavailable(DEVICE) is None


def test_a_launch_passes_the_sizes_and_the_stream(fake):
    nvrtc.launch(load(shared=50_000), (5, 1, 1), (32, 2, 1), [torch.rand(3), 2, 0.5], DEVICE)
    assert fake.launches == [(1234, (5, 1, 1, 32, 2, 1, 50_000))]


def test_a_launch_of_no_blocks_does_nothing(fake):
    nvrtc.launch(load(), (0, 1, 1), (32, 1, 1), [], DEVICE)
    assert not fake.launches


def test_a_launch_error_names_the_kernel_its_size_and_the_error(fake):
    fake.launch_error = 701
    with pytest.raises(KernelUnavailableError, match=r"'step'.*\(5, 1, 1\).*\(1024, 2, 1\).*701.*too many resources"):
        nvrtc.launch(load(), (5, 1, 1), (1024, 2, 1), [], DEVICE)


def test_files_are_stored_completely(tmp_path):
    path = tmp_path / "new" / "kernel.cubin"
    nvrtc.store_binary(path, b"binary")
    assert [file.name for file in path.parent.iterdir()] == ["kernel.cubin"]
    assert nvrtc.read_binary(path) == b"binary"


def test_where_the_folder_cannot_be_created_nothing_is_stored(fake, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIGRANET_CACHE", str(tmp_path / "file"))
    assert load().name == "step"
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can write everywhere")
def test_where_the_folder_cannot_be_written_nothing_is_stored(fake, tmp_path, monkeypatch):
    folder = tmp_path / "read-only"
    folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("TIGRANET_CACHE", str(folder))
    assert load().name == "step"
    assert not list(folder.iterdir())


def test_what_cannot_be_read_is_compiled(fake, tmp_path):
    load()
    (path,) = (tmp_path / "cache").iterdir()
    path.unlink()
    path.mkdir()
    remove_from_memory()
    load()
    assert len(fake.compilations) == 2
