import copy
import pickle
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tigranet.graphs import GridLaplacian
from tigranet.graphs.grid_cache import MAX_GRIDS, GridCache


def test_a_grid_has_the_options_of_the_cache():
    grid = GridCache(neighbours=4, boundary="torus", diagonal=0.5).get(5, 7)
    assert (grid.height, grid.width) == (5, 7)
    assert (grid.neighbours, grid.boundary, grid.diagonal) == (4, "torus", 0.5)


def test_the_same_size_gives_the_same_grid():
    grids = GridCache()
    assert grids.get(5, 7) is grids.get(5, 7)
    assert grids.get(7, 5) is not grids.get(5, 7)


def test_the_least_recently_used_grid_is_dropped():
    grids = GridCache(max_grids=2)
    first = grids.get(4, 4)
    grids.get(5, 5)
    assert grids.get(4, 4) is first  # now (5, 5) is the least recently used size
    grids.get(6, 6)
    assert grids.sizes == [(4, 4), (6, 6)]
    assert grids.get(4, 4) is first


def test_the_number_of_grids_is_bounded():
    grids = GridCache()
    for size in range(2, 50):
        grids.get(size, size)
        assert len(grids.sizes) <= MAX_GRIDS
    assert grids.sizes == [(size, size) for size in range(50 - MAX_GRIDS, 50)]


def test_an_invalid_size_is_not_cached():
    grids = GridCache()
    with pytest.raises(ValueError, match="1 x 1"):
        grids.get(1, 1)
    assert grids.sizes == []
    assert grids.get(2, 2).num_nodes == 4  # the lock is free again


@pytest.fixture
def slow_build(monkeypatch):
    """Building a grid takes long enough for another thread to run."""
    build = GridLaplacian.__init__

    def build_slowly(self, *arguments):
        time.sleep(0.001)
        build(self, *arguments)

    monkeypatch.setattr(GridLaplacian, "__init__", build_slowly)


def test_many_threads_with_many_sizes_get_the_right_grids(slow_build):
    grids, start = GridCache(max_grids=3), threading.Barrier(8)

    def request_grids(thread):
        start.wait()
        for step in range(40):
            height, width = 2 + (thread + step) % 7, 2 + (3 * step) % 5
            grid = grids.get(height, width)
            assert (grid.height, grid.width) == (height, width)
            assert len(grids.sizes) <= 3
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(request_grids, range(8)))


def test_threads_share_one_grid_per_size(slow_build):
    grids, start = GridCache(), threading.Barrier(8)

    def request_grid(_):
        start.wait()
        return grids.get(31, 33)

    with ThreadPoolExecutor(8) as pool:
        assert len({id(grid) for grid in list(pool.map(request_grid, range(8)))}) == 1


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda grids: pickle.loads(pickle.dumps(grids))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_has_the_same_options_and_starts_empty(duplicate):
    grids = GridCache(4, "torus", 0.5, max_grids=3)
    grid = grids.get(5, 5)
    other = duplicate(grids)
    assert repr(other) == repr(grids) == "GridCache(neighbours=4, boundary='torus', diagonal=0.5, max_grids=3)"
    assert other.sizes == []
    assert grids.sizes == [(5, 5)]
    assert other.get(5, 5) is not grid
    assert torch.equal(other.get(5, 5).to_dense(), grid.to_dense())


def test_a_copy_can_be_made_while_another_thread_holds_the_lock(monkeypatch):
    grids, is_building, is_copied = GridCache(), threading.Event(), threading.Event()
    build = GridLaplacian.__init__

    def build_and_wait(self, *arguments):
        is_building.set()
        assert is_copied.wait(10)
        build(self, *arguments)

    monkeypatch.setattr(GridLaplacian, "__init__", build_and_wait)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(grids.get, 5, 5)
        assert is_building.wait(10)
        other = copy.deepcopy(grids)
        is_copied.set()
        assert pending.result() is grids.get(5, 5)
    assert other.sizes == []


def test_a_compiler_reads_the_cache_and_does_not_change_it(monkeypatch):
    grids = GridCache(max_grids=2)
    first, _ = grids.get(4, 4), grids.get(5, 5)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert grids.get(4, 4) is first
    assert grids.get(6, 6).num_nodes == 36
    assert grids.sizes == [(4, 4), (5, 5)]


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"max_grids": 0}, ["max_grids", "at least 1", "0"]),
        ({"boundary": "wrap"}, ["boundary", "'wrap'"]),
        ({"neighbours": 5}, ["neighbours", "5"]),
    ],
)
def test_invalid_options_are_rejected_before_the_first_grid(options, values, without_shape_checks):
    with pytest.raises(ValueError, match=".*".join(map(re.escape, values))):
        GridCache(**options)
