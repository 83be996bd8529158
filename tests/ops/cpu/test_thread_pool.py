from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tigranet import GridLaplacian, Statistics
from tigranet.ops import using
from tigranet.ops.cpu.thread_pool import MAX_SINGLE_THREAD_WORK, share


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("items", [0, 1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("work", [0, MAX_SINGLE_THREAD_WORK + 1])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_item_is_computed_once(items, work, threads):
    computed = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    share(lambda first, last: computed.extend(range(first, last)), items, work)
    torch.set_num_threads(before)
    assert sorted(computed) == list(range(items))


def test_an_error_in_any_thread_is_raised(two_threads):
    def fail(first, last):
        raise ArithmeticError(f"{first}")

    with pytest.raises(ArithmeticError):
        share(fail, 10, MAX_SINGLE_THREAD_WORK + 1)


def test_several_threads_may_call_at_once(two_threads):
    z, grid = torch.rand(8, 10, 400), GridLaplacian(20, 20)

    def compute(_=None):
        with using("fused"):
            return Statistics(6)(z, grid)

    expected = compute()
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(compute, range(16)):
            assert torch.equal(actual, expected)


FORK = """
import os, torch
from torch.utils.data import DataLoader, Dataset
from tigranet import GridLaplacian, Statistics

torch.set_num_threads(2)
z, grid = torch.rand(10, 20, 400), GridLaplacian(20, 20)
expected = Statistics(6)(z, grid)  # the threads are running now
child = os.fork()
if not child:
    os._exit(0 if torch.equal(Statistics(6)(z, grid), expected) else 1)
assert os.waitpid(child, 0)[1] == 0

class Features(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return Statistics(6)(z, grid)

for batch in DataLoader(Features(), num_workers=2, batch_size=None, multiprocessing_context="fork"):
    assert torch.equal(batch, expected)
assert torch.equal(Statistics(6)(z, grid), expected)
"""


def test_forked_processes_and_data_loader_workers_can_use_the_kernels(torch_process):
    process = torch_process.run(FORK, timeout=120)
    assert process.returncode == 0, process.stderr
