"""Limits on the memory of a process: what each command needs, how it is refused, and how address space is saved."""

import os
import subprocess
import sys

import pytest
from PIL import Image

from tigranet import TIGraNet, memory_limit
from tigranet.cli.app import app, describe_error
from tigranet.memory_limit import (
    ARENA_VARIABLE,
    ARROW_VARIABLE,
    M_ARENA_MAX,
    MAPPED_FILES_BYTES,
    NEEDED_BYTES,
    OPTION_BYTES,
    THREAD_BYTES,
    THREAD_VARIABLE,
    TooLittleMemoryError,
    describe_shortage,
    memory_limits,
    prepare_memory,
    within_memory,
)

resource = pytest.importorskip("resource", reason="the system has no limits for each process")
NEEDED = NEEDED_BYTES["report"]
CORES = 64


class FakeLibrary:
    """Records the calls of glibc's ``mallopt``."""

    def __init__(self):
        self.parameters = {}

    def mallopt(self, parameter, value):
        self.parameters[parameter.value] = value.value


@pytest.fixture
def library(monkeypatch):
    """A machine with 64 cores whose user has set nothing."""
    fake = FakeLibrary()
    monkeypatch.setattr(memory_limit, "glibc", lambda: fake)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(CORES)), raising=False)
    for name in (THREAD_VARIABLE, ARENA_VARIABLE, ARROW_VARIABLE, "GLIBC_TUNABLES"):
        monkeypatch.setenv(name, "")  # so that the value of today comes back after the test
        monkeypatch.delenv(name)
    return fake


def limit(monkeypatch, **limits):
    monkeypatch.setattr(memory_limit, "memory_limits", lambda: limits)


def test_each_command_has_a_figure():
    names = {command.callback.__name__ for command in app.registered_commands}
    assert names == set(NEEDED_BYTES)


@pytest.mark.parametrize(("option", "needed"), [("v", NEEDED), ("d", NEEDED - MAPPED_FILES_BYTES)])
def test_a_limit_is_refused_if_it_is_below_the_need_and_only_then(monkeypatch, library, option, needed):
    limit(monkeypatch, **{option: needed})
    prepare_memory("report")
    limit(monkeypatch, **{option: needed - 1})
    with pytest.raises(TooLittleMemoryError) as error:
        prepare_memory("report")
    for value in ("tigranet report", f"{needed / 1e9:.2f} GB", f"ulimit -{option} {(needed - 1) // 1024}"):
        assert value in str(error.value)
    remedy = int(str(error.value).split(f"'ulimit -{option} ")[1].split("'")[0])
    assert needed <= remedy * 1024 < needed + 1024  # what the message recommends is enough
    assert describe_error(error.value) == str(error.value)


def test_an_option_with_libraries_of_its_own_counts_if_it_is_in_use(monkeypatch, library):
    @within_memory
    def predict(csv=None, parquet=None):
        return parquet

    limit(monkeypatch, v=NEEDED_BYTES["predict"] + OPTION_BYTES["parquet"] - 1)
    assert predict(csv="a.csv", parquet=None) is None
    with pytest.raises(TooLittleMemoryError):
        predict(csv=None, parquet="a.parquet")


@pytest.mark.parametrize(("spare_threads", "threads"), [(0, 1), (0.9, 1), (2.5, 3), (CORES, CORES), (CORES + 9, CORES)])
def test_as_many_threads_are_started_as_fit(monkeypatch, library, spare_threads, threads):
    limit(monkeypatch, v=NEEDED + int(spare_threads * THREAD_BYTES))
    prepare_memory("report")
    assert (os.environ[THREAD_VARIABLE], os.environ[ARROW_VARIABLE]) == (str(threads), "system")
    assert library.parameters == {M_ARENA_MAX: 1}


@pytest.mark.parametrize("limits", [{}, {"v": 100 * NEEDED}, {"d": NEEDED}], ids=str)
def test_nothing_changes_where_no_limit_of_the_address_space_is_near(monkeypatch, library, limits):
    limit(monkeypatch, **limits)
    prepare_memory("report")
    assert not {THREAD_VARIABLE, ARROW_VARIABLE} & set(os.environ)
    assert library.parameters == {}


@pytest.mark.parametrize(("name", "value"), [(ARENA_VARIABLE, "4"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=4")])
def test_the_user_decides_about_threads_and_arenas(monkeypatch, library, name, value):
    limit(monkeypatch, v=NEEDED)
    monkeypatch.setenv(THREAD_VARIABLE, "5")
    monkeypatch.setenv(ARROW_VARIABLE, "jemalloc")
    monkeypatch.setenv(name, value)
    prepare_memory("report")
    assert (os.environ[THREAD_VARIABLE], os.environ[ARROW_VARIABLE]) == ("5", "jemalloc")
    assert library.parameters == {}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("std::bad_alloc"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: 176160768 bytes"),
        RuntimeError("can't start new thread"),
        MemoryError("Unable to allocate 1.2 GiB for an array"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_the_error_of_a_library_without_memory_becomes_a_line_with_limit_and_remedy(monkeypatch, error):
    limit(monkeypatch, v=2**31)
    line = describe_error(error)
    assert str(error) in line
    assert f"ulimit -v is {2**21}" in line
    assert "smaller" in line
    assert "\n" not in line


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    for error in (MemoryError("too large"), ValueError("no class"), TooLittleMemoryError("needs 2 GB")):
        assert describe_shortage(error) is None


def run(folder, bytes_allowed, *arguments):
    """Run the command in a process with a limited address space and without chosen threads."""
    environment = {name: value for name, value in os.environ.items() if name != THREAD_VARIABLE}
    return subprocess.run(
        [sys.executable, "-m", "tigranet", *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_allowed, bytes_allowed)),
    )


needs_limit = pytest.mark.skipif(
    sys.platform != "linux" or bool(memory_limits()), reason="the figures are measured on Linux, without other limits"
)


@needs_limit
def test_a_report_without_enough_memory_ends_with_one_line_before_anything_is_read(tmp_path):
    """With 1.2 GB it started before, and ended with a damaged interpreter in one of two runs."""
    result = run(tmp_path, 1_200_000 * 1024, "report", "no-model", "no-data", "-o", "page")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("tigranet: 'tigranet report' needs")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@needs_limit
def test_a_command_succeeds_with_the_memory_that_it_is_said_to_need(tmp_path):
    Image.new("L", (28, 28), 99).save(tmp_path / "photo.png")
    TIGraNet("SC[2,2]-S[2]", 2, image_size=28, class_names=["a", "b"]).save_pretrained(tmp_path / "m")
    result = run(tmp_path, NEEDED_BYTES["predict"], "predict", "m", "photo.png", "--csv", "answers.csv")
    assert (result.returncode, (tmp_path / "answers.csv").exists()) == (0, True), result.stderr
