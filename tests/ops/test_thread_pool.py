import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tigranet import GridLaplacian, Statistics
from tigranet.ops import using
from tigranet.ops.thread_pool import SMALL, share


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("items", [0, 1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("work", [0, SMALL + 1])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_item_is_done_once(items, work, threads):
    done = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    share(lambda first, last: done.extend(range(first, last)), items, work)
    torch.set_num_threads(before)
    assert sorted(done) == list(range(items))


def test_an_error_in_any_thread_is_raised(two_threads):
    def fail(first, last):
        raise ArithmeticError(f"{first}")

    with pytest.raises(ArithmeticError):
        share(fail, 10, SMALL + 1)


def test_several_threads_may_call_at_once(two_threads):
    z, grid = torch.rand(8, 10, 400), GridLaplacian(20, 20)
    with using("fused"):
        wanted = Statistics(6)(z, grid)
        with ThreadPoolExecutor(4) as pool:
            for came in pool.map(lambda _: Statistics(6)(z, grid), range(16)):
                assert torch.equal(came, wanted)


FORKED = """
import os, sys, torch, warnings
from torch.utils.data import DataLoader, Dataset
from tigranet import GridLaplacian, Statistics

torch.set_num_threads(2)
z, grid = torch.rand(10, 20, 400), GridLaplacian(20, 20)
wanted = Statistics(6)(z, grid)  # the threads are running now
child = os.fork()
if not child:
    os._exit(0 if torch.equal(Statistics(6)(z, grid), wanted) else 1)
assert os.waitpid(child, 0)[1] == 0

class Features(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return Statistics(6)(z, grid)

for batch in DataLoader(Features(), num_workers=2, batch_size=None, multiprocessing_context="fork"):
    assert torch.equal(batch, wanted)
assert torch.equal(Statistics(6)(z, grid), wanted)
"""


def test_a_forked_process_and_the_workers_of_a_loader_compute_too():
    finished = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr
