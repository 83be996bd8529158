"""The property ``coarsening`` of every Laplacian."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from example_graphs import nearest_neighbours
from tigranet import Laplacian, SparseLaplacian


@pytest.fixture
def laplacian():
    return SparseLaplacian(nearest_neighbours())


class CompleteGraph(Laplacian):
    """A graph of a class without coarsening."""

    def __init__(self, num_nodes):
        super().__init__(num_nodes, torch.tensor(1 / (num_nodes - 1), dtype=torch.float64))

    def shifted(self, y):
        return self._constant_like(y) * (y - y.sum(-1, keepdim=True))

    def __repr__(self):
        return f"CompleteGraph({self.num_nodes})"


def test_a_class_without_coarsening_says_so():
    with pytest.raises(TypeError, match=r"CompleteGraph\(5\) cannot be coarsened.*_coarsen method in CompleteGraph"):
        _ = CompleteGraph(5).coarsening


def test_a_graph_is_coarsened_once(laplacian):
    assert laplacian.coarsening is laplacian.coarsening
    assert laplacian.coarsening.laplacian.coarsening is laplacian.coarsening.laplacian.coarsening


def test_threads_get_equal_coarsenings(laplacian):
    y = torch.rand(laplacian.num_nodes)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: laplacian.coarsening(y), range(8)))
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda laplacian: pickle.loads(pickle.dumps(laplacian))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_does_not_carry_the_coarsening(laplacian, duplicate):
    y = torch.rand(laplacian.num_nodes)
    size = len(pickle.dumps(laplacian))
    expected = laplacian.coarsening(y)
    assert len(pickle.dumps(laplacian)) == size
    other = duplicate(laplacian)
    assert other.coarsening is not laplacian.coarsening
    assert torch.equal(other.coarsening(y), expected)
    assert torch.equal(other(y), laplacian(y))


def test_gradients_are_recorded_after_a_use_in_inference_mode(laplacian):
    with torch.inference_mode():
        laplacian.coarsening.laplacian(laplacian.coarsening(torch.rand(laplacian.num_nodes)))
    y = torch.rand(laplacian.num_nodes, requires_grad=True)
    laplacian.coarsening.laplacian(laplacian.coarsening(y)).square().sum().backward()
    assert y.grad is not None


def test_a_compiler_does_not_change_the_graph(laplacian, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        first = laplacian.coarsening
        assert laplacian.coarsening is not first
    assert laplacian.coarsening is laplacian.coarsening
