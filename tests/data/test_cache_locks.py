import errno
import os
import threading
import time

import numpy as np
import pytest

from tigranet.data import cache_locks
from tigranet.data.cache_locks import exclusive_lock, is_used, mark_as_used

pytestmark = pytest.mark.skipif(cache_locks.fcntl is None, reason="locks of Unix")


def no_progress():
    return 0


def test_one_thread_has_the_lock_at_a_time_and_no_lock_file_stays(tmp_path):
    inside, largest = [], []

    def work():
        with exclusive_lock(tmp_path / "lock", no_progress) as is_held:
            inside.append(is_held)
            largest.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert largest == [1] * 4
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(KeyError), exclusive_lock(tmp_path / "lock", no_progress):
        raise KeyError
    with exclusive_lock(tmp_path / "lock", no_progress) as is_held:
        assert is_held


def hold(path, released):
    """Hold a lock in another thread until an event, and return the thread."""
    held = threading.Event()

    def work():
        with exclusive_lock(path, no_progress):
            held.set()
            released.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(10)
    return thread


def test_a_process_that_makes_no_progress_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_locks, "STALL_SECONDS", 0.1)
    released = threading.Event()
    thread = hold(tmp_path / "lock", released)
    with pytest.raises(TimeoutError, match="no progress"), exclusive_lock(tmp_path / "lock", no_progress):
        pass
    released.set()
    thread.join()


def test_a_process_that_makes_progress_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_locks, "STALL_SECONDS", 0.1)
    released = threading.Event()
    thread = hold(tmp_path / "lock", released)
    states = []

    def progress():
        states.append(0)
        if len(states) > 4:
            released.set()
        return len(states)

    with exclusive_lock(tmp_path / "lock", progress) as is_held:
        assert is_held
    thread.join()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EROFS])
def test_without_locks_the_work_goes_on(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with exclusive_lock(tmp_path / "lock", no_progress) as is_held:
        assert not is_held
    (tmp_path / "file").touch()
    with (tmp_path / "file").open("rb") as file:
        mark_as_used(file)
    assert not is_used(tmp_path / "file")


def test_a_file_is_used_as_long_as_it_is_mapped(tmp_path):
    path = tmp_path / "pixels"
    path.write_bytes(bytes(4096))
    assert not is_used(path)
    with path.open("rb") as file:
        mark_as_used(file)
        pixels = np.memmap(file, np.float32, "c")
    assert is_used(path)
    del pixels
    assert not is_used(path)
    assert is_used(tmp_path / "missing")
