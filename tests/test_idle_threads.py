"""How the threads of OpenMP wait: the environment of new processes, and processes that load PyTorch first."""

import json
import os
import subprocess
import sys

import pytest
import torch

from tigranet import idle_threads
from tigranet.idle_threads import WAITING_VARIABLES, let_idle_threads_sleep, reserve_threads


def run(code: str, **variables: str) -> dict:
    """Run Python code in a new process without any of the user's settings, and return the JSON that it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in WAITING_VARIABLES} | variables
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


PYTORCH_AFTER = """
import json, os, sys

class Recorder:
    at_import = []
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            self.at_import.append(os.environ.get("OMP_WAIT_POLICY"))

sys.meta_path.insert(0, Recorder())
import tigranet
loaded = "torch" in sys.modules
tigranet.GridLaplacian
print(json.dumps([loaded, Recorder.at_import, os.environ["OMP_WAIT_POLICY"], len(tigranet.idle_threads._reserve)]))
"""


def test_the_variable_is_set_before_pytorch_is_loaded():
    assert run(PYTORCH_AFTER) == [False, ["passive"], "passive", 0]


@pytest.mark.parametrize(
    ("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "5"), ("KMP_BLOCKTIME", "1")]
)
def test_the_choice_of_the_user_is_kept(name, value):
    code = f"import json, os, tigranet; print(json.dumps({{n: os.environ.get(n) for n in {WAITING_VARIABLES}}}))"
    assert run(code, **{name: value}) == dict.fromkeys(WAITING_VARIABLES) | {name: value}


PYTORCH_BEFORE = """
import json, os, threading
import torch

torch.ones(100_000).sum()
os.sched_getaffinity = lambda process: set(range(4))
tasks = len(os.listdir("/proc/self/task"))
import tigranet
from tigranet.idle_threads import let_idle_threads_sleep
let_idle_threads_sleep()
names = [thread.name for thread in threading.enumerate() if thread.daemon]
print(json.dumps([os.environ.get("OMP_WAIT_POLICY"), names, len(os.listdir("/proc/self/task")) - tasks]))
"""


@pytest.mark.skipif(not idle_threads._uses_gnu_openmp(), reason="PyTorch uses another OpenMP")
def test_if_pytorch_is_loaded_already_then_openmp_gets_more_threads_than_cores():
    """On 4 cores, with teams of 2 threads: 3 callers that sleep, each with one more thread, and the first thread."""
    policy, names, new_threads = run(PYTORCH_BEFORE, OMP_NUM_THREADS="2")
    assert policy is None
    assert names == ["tigranet-reserve"] * 3
    assert new_threads == 6


@pytest.mark.parametrize("gnu", [True, False])
@pytest.mark.parametrize("variable", [None, *WAITING_VARIABLES])
def test_threads_are_started_for_gnu_openmp_only_and_not_against_the_user(monkeypatch, gnu, variable):
    for name in WAITING_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "0")
    calls = []
    monkeypatch.setattr(idle_threads, "_reserve", [])
    monkeypatch.setattr(idle_threads, "_uses_gnu_openmp", lambda: gnu)
    monkeypatch.setattr(idle_threads, "reserve_threads", lambda: calls.append(True))
    let_idle_threads_sleep()
    assert calls == [True] * (gnu and variable is None)
    if variable != "OMP_WAIT_POLICY":
        assert "OMP_WAIT_POLICY" not in os.environ


@pytest.mark.parametrize(("threads", "cores"), [(1, 8), (2, 1000), (64, 64 * 2)])
def test_no_threads_are_started_if_there_is_one_or_if_it_would_take_too_many(monkeypatch, threads, cores):
    started: list = []
    monkeypatch.setattr(idle_threads, "_reserve", started)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    reserve_threads()
    assert not started


def test_on_a_system_without_proc_the_kind_of_openmp_is_unknown(monkeypatch):
    def missing(self):
        raise FileNotFoundError(self)

    monkeypatch.setattr(idle_threads.Path, "read_text", missing)
    assert not idle_threads._uses_gnu_openmp()
