import json
import os
import socket
import subprocess
import sys

import torch

from tigranet.distributed import gather_rows, moments

TWO_PROCESSES = """
import os, sys, json, torch, torch.distributed as dist
from tigranet.distributed import gather_rows
from tigranet.layers import Standardise
rank = int(sys.argv[1])
dist.init_process_group("gloo", rank=rank, world_size=2)
torch.manual_seed(0)
whole = torch.rand(7, 3, dtype=torch.float64)
counts = json.loads(sys.argv[2])
for first in counts:  # number of rows of the first process; the second has the others
    leaf = whole.clone().requires_grad_()
    part = leaf[:first] if rank == 0 else leaf[first:]
    assert torch.equal(gather_rows(part), whole)
    weights = torch.arange(21, dtype=torch.float64).reshape(7, 3)
    layer = Standardise(3).double()
    part_weights = weights[:first] if rank == 0 else weights[first:]
    (layer(part) * part_weights).sum().backward()
    gradient = leaf.grad
    dist.all_reduce(gradient)
    reference = whole.clone().requires_grad_()
    expected = (reference - reference.mean(0)) / (reference.var(0, correction=0) + layer.eps).sqrt()
    (expected * weights).sum().backward()
    torch.testing.assert_close(gradient, reference.grad, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(layer.mean, whole.mean(0))
    leaf = torch.rand(7, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    maps, layer = leaf[:first] if rank == 0 else leaf[first:], Standardise(3, eps=1e-5).double()
    (layer(maps) * part_weights[..., None] * torch.arange(5)).sum().backward()
    gradient = leaf.grad
    dist.all_reduce(gradient)
    reference = leaf.detach().clone().requires_grad_()
    expected = torch.nn.functional.batch_norm(reference, None, None, training=True, eps=1e-5)
    (expected * weights[..., None] * torch.arange(5)).sum().backward()
    torch.testing.assert_close(gradient, reference.grad, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(layer.variance, reference.detach().var((0, 2), correction=0))
dist.barrier()
os._exit(0)  # skips the shutdown of the process group, which is not tested here
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_single_process_gets_its_own_tensor():
    x = torch.rand(3, 2)
    assert gather_rows(x) is x


def test_the_moments_of_a_single_process_are_those_of_its_rows_and_nodes():
    x = torch.rand(4, 3, 5)
    variance, mean, count = moments(x)
    torch.testing.assert_close(mean, x.mean((0, 2)))
    torch.testing.assert_close(variance, x.var((0, 2), correction=0))
    assert count == 20


def test_two_processes_standardise_over_the_whole_batch_forward_and_backward():
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", TWO_PROCESSES]
    processes = [
        subprocess.Popen([*command, str(rank), json.dumps([4, 3, 6, 7])], env=environment, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    errors = [process.communicate(timeout=120)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
