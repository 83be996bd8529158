"""In two threads that stand for two processes, batch normalisations are those of the whole batch."""

import threading

import pytest
import torch
from torch import nn

from tigranet import distributed
from tigranet.training.synchronised_batch_norm import synchronised_batch_norms


def test_only_pytorchs_batch_normalisations_change():
    network = nn.Sequential(nn.BatchNorm2d(2), nn.GroupNorm(1, 2), nn.Sequential(nn.BatchNorm1d(2)))
    names = list(network.state_dict())
    with synchronised_batch_norms(network):
        assert [type(part).__name__ for part in network] == ["SynchronisedBatchNorm2d", "GroupNorm", "Sequential"]
        assert list(network.state_dict()) == names
    with synchronised_batch_norms(network, active=False):
        assert type(network[0]) is nn.BatchNorm2d
    assert [type(network[0]), type(network[2][0])] == [nn.BatchNorm2d, nn.BatchNorm1d]


def test_they_change_back_after_an_error():
    network = nn.BatchNorm2d(2)
    with pytest.raises(KeyError), synchronised_batch_norms(network):
        raise KeyError
    assert type(network) is nn.BatchNorm2d


def test_a_single_process_has_pytorchs_results():
    network, x = nn.BatchNorm2d(2), torch.rand(4, 2, 3, 3)
    expected = nn.BatchNorm2d(2)(x)
    with synchronised_batch_norms(network):
        assert torch.equal(network(x), expected)


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("first", [1, 3])
def test_two_processes_have_the_results_of_one(monkeypatch, momentum, first):
    """Output, gradients and running estimates, with parts of different sizes."""
    whole = torch.randn(5, 2, 3, 3, dtype=torch.float64)
    expected = nn.BatchNorm2d(2, momentum=momentum).double()
    leaf = whole.clone().requires_grad_()
    weights = torch.rand_like(whole)
    (expected(leaf) * weights).sum().backward()

    gathered, barrier = [None, None], threading.Barrier(2)
    rank = threading.local()

    def gather_rows(x):
        gathered[rank.value] = x
        barrier.wait()
        rows = torch.cat(gathered)
        barrier.wait()
        return rows

    monkeypatch.setattr(distributed, "gather_rows", gather_rows)
    monkeypatch.setattr(distributed, "is_single_process", lambda: False)
    monkeypatch.setattr("tigranet.training.synchronised_batch_norm.is_single_process", lambda: False)
    networks = [nn.BatchNorm2d(2, momentum=momentum).double() for _ in range(2)]
    results = [None, None]
    shared = whole.clone().requires_grad_()

    def run(number):
        rank.value = number
        part = shared[:first] if number == 0 else shared[first:]
        results[number] = networks[number](part)

    with synchronised_batch_norms(networks[0]), synchronised_batch_norms(networks[1]):
        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (torch.cat(results) * weights).sum().backward()
    torch.testing.assert_close(torch.cat(results), expected(leaf).detach().clone())
    torch.testing.assert_close(shared.grad, leaf.grad)
    for network in networks:
        torch.testing.assert_close(network.running_mean, networks[0].running_mean)
    fresh = nn.BatchNorm2d(2, momentum=momentum).double()
    fresh(whole)
    torch.testing.assert_close(networks[0].running_mean, fresh.running_mean)
    torch.testing.assert_close(networks[0].running_var, fresh.running_var)


def test_without_gradients_every_process_uses_its_own_images(monkeypatch):
    monkeypatch.setattr("tigranet.training.synchronised_batch_norm.is_single_process", lambda: False)
    network, x = nn.BatchNorm2d(2), torch.rand(4, 2, 3, 3)
    expected = nn.BatchNorm2d(2)(x)
    with synchronised_batch_norms(network), torch.no_grad():
        torch.testing.assert_close(network(x), expected)
