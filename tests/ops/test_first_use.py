"""The first use of a kernel, which compiles it, and every later one: the same bits."""

import os
import subprocess
import sys

SCRIPT = """
import hashlib
import torch
from tigranet import TIGraNet

torch.manual_seed(0)
net = TIGraNet("MC[4,3]-OP[2]-MC[4,3]-SC[3,2]-DP[60]-S[3]-FC[8]", 3)
net(torch.rand(6, 1, 12, 13)).square().sum().backward()
gradients = b"".join(parameter.grad.numpy().tobytes() for parameter in net.parameters())
print(hashlib.sha256(gradients).hexdigest())
"""


def test_code_that_is_new_and_code_from_the_cache_give_the_same_bits(tmp_path):
    where = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    first, second = (
        subprocess.run([sys.executable, "-c", SCRIPT], env=where, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second
    assert any(tmp_path.rglob("*.nbi"))
