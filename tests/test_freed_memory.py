"""Freed memory is kept within the block and given back after it, counted in page faults and in resident memory."""

import ctypes
import os
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from tigranet import freed_memory
from tigranet.evaluation.batched_inference import inference
from tigranet.freed_memory import KEEP, RESTORE, keep_freed_memory

BYTES = 48 * 2**20
"""glibc by itself maps an array of more than 32 MiB separately."""
needsglibc = pytest.mark.skipif(freed_memory.glibc() is None, reason="the C library is not glibc")


class FakeLibrary(ctypes.CDLL):
    """Records calls, and has no other functions. It holds ``free`` bytes that are not in use."""

    def __init__(self, free: int = 0) -> None:
        self.free, self.parameters, self.trimmed = free, {}, 0

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)

    def mallopt(self, parameter: int, value: int) -> int:
        self.parameters[parameter] = value
        return 1

    def malloc_trim(self, pad: object) -> int:
        self.trimmed += 1
        return 1


@pytest.fixture
def library(monkeypatch):
    for name in (*freed_memory.USER_VARIABLES, "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    fake = FakeLibrary()
    monkeypatch.setattr(freed_memory, "glibc", lambda: fake)
    monkeypatch.setattr(freed_memory, "_free_bytes", lambda library: library.free)
    return fake


def test_the_parameters_are_set_within_the_block_and_restored(library):
    with keep_freed_memory():
        assert library.parameters == KEEP
    assert library.parameters == RESTORE
    assert RESTORE.keys() >= KEEP.keys()


def test_the_parameters_are_restored_after_an_error(library):
    with pytest.raises(ArithmeticError), keep_freed_memory():
        raise ArithmeticError
    assert library.parameters == RESTORE


def test_the_last_of_nested_and_overlapping_blocks_restores(library):
    is_open, may_close = threading.Event(), threading.Event()

    def other_thread() -> None:
        with keep_freed_memory():
            is_open.set()
            may_close.wait(10)

    thread = threading.Thread(target=other_thread)
    with keep_freed_memory():
        with keep_freed_memory():
            thread.start()
            is_open.wait(10)
        assert library.parameters == KEEP
    assert library.parameters == KEEP
    may_close.set()
    thread.join()
    assert library.parameters == RESTORE


@pytest.mark.parametrize("more_than_may_be_kept", [False, True])
def test_only_much_free_memory_is_given_back(library, more_than_may_be_kept):
    library.free = freed_memory.MAX_IDLE_BYTES + more_than_may_be_kept
    with keep_freed_memory():
        assert not library.trimmed
    assert library.trimmed == more_than_may_be_kept


@pytest.mark.parametrize(
    ("name", "value", "changes"),
    [
        ("MALLOC_TOP_PAD_", "0", False),
        ("MALLOC_MMAP_THRESHOLD_", "1000000", False),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=128", False),
        ("MALLOC_ARENA_MAX", "2", True),
        ("GLIBC_TUNABLES", "glibc.malloc.arena_max=2", True),
    ],
)
def test_the_choice_of_the_user_is_kept(library, monkeypatch, name, value, changes):
    monkeypatch.setenv(name, value)
    with keep_freed_memory():
        assert bool(library.parameters) == changes


def test_a_block_that_is_not_enabled_changes_nothing(library):
    with keep_freed_memory(False):
        pass
    assert not library.parameters


def test_without_glibc_nothing_changes(monkeypatch):
    monkeypatch.setattr(freed_memory, "glibc", lambda: None)
    with keep_freed_memory():
        assert freed_memory._open_blocks == 0


@pytest.mark.parametrize("error", [AttributeError, ValueError, OSError])
def test_systems_without_glibc_are_recognised(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(os, "confstr", fail, raising=False)
    assert freed_memory.glibc.__wrapped__() is None


def test_an_old_glibc_that_cannot_count_free_memory_gives_it_back():
    assert freed_memory._free_bytes(FakeLibrary()) > freed_memory.MAX_IDLE_BYTES


def test_inference_keeps_memory(library):
    with inference(nn.Linear(2, 2)):
        assert library.parameters == KEEP
    assert library.parameters == RESTORE


def page_faults_of_one_array() -> int:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(BYTES, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@needsglibc
def test_arrays_of_the_same_size_soon_cause_no_page_faults(monkeypatch):
    monkeypatch.setattr(freed_memory, "MAX_IDLE_BYTES", 0)
    with keep_freed_memory():
        pass  # gives back what earlier tests have left, in which an array would cause no page faults
    with keep_freed_memory():
        first = [page_faults_of_one_array() for _ in range(16)]  # until the heap has gaps that are large enough
        later = [page_faults_of_one_array() for _ in range(3)]
    afterwards = page_faults_of_one_array()
    pages = BYTES // os.sysconf("SC_PAGE_SIZE")
    assert max(later) < pages / 100
    assert sum(first) >= pages / 2
    assert afterwards >= pages / 2


@needsglibc
def test_the_memory_is_given_back_after_the_block(monkeypatch):
    monkeypatch.setattr(freed_memory, "MAX_IDLE_BYTES", 0)
    with keep_freed_memory():
        page_faults_of_one_array()
        within = resident_bytes()
    assert resident_bytes() < within - BYTES / 2
