"""How the threads of OpenMP wait: the environment of new processes, and processes that load PyTorch first."""

import json
import os
import subprocess
import sys
import threading

import pytest

from tigranet import idle_threads
from tigranet.idle_threads import WAITING_VARIABLES


def run(code, **variables):
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
            raise ImportError("importing it would take two seconds")

sys.meta_path.insert(0, Recorder())
import tigranet
loaded = "torch" in sys.modules
try: tigranet.GridLaplacian
except ImportError: pass
print(json.dumps([loaded, Recorder.at_import, os.environ["OMP_WAIT_POLICY"]]))
"""


def test_the_variable_is_set_before_pytorch_is_loaded():
    assert run(PYTORCH_AFTER) == [False, ["passive"], "passive"]


@pytest.mark.parametrize(
    ("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "5"), ("KMP_BLOCKTIME", "1")]
)
def test_the_choice_of_the_user_is_kept(name, value):
    code = f"import json, os, tigranet; print(json.dumps({{n: os.environ.get(n) for n in {WAITING_VARIABLES}}}))"
    assert run(code, **{name: value}) == dict.fromkeys(WAITING_VARIABLES) | {name: value}


def test_the_environment_stays_as_it_is_if_pytorch_is_loaded_already():
    code = "import json, os, threading, torch, tigranet; print(json.dumps(os.environ.get('OMP_WAIT_POLICY')))"
    assert run(code) is None


IDLE_TIME = """
import json, time, torch
if {import_tigranet}: import tigranet
torch.set_num_threads(2)
numbers = torch.rand(2_000_000)
numbers += 1
start = time.process_time()
for _ in range(50):
    numbers += 1
    time.sleep(0.004)
print(json.dumps(time.process_time() - start))
"""


@pytest.mark.skipif(sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="GNU's OpenMP spins on two cores")
def test_threads_sleep_between_operations_although_pytorch_is_loaded_first():
    """Between the operations the process sleeps, so that all processor time beyond theirs is that of spinning."""
    spinning, sleeping = (run(IDLE_TIME.format(import_tigranet=value)) for value in (False, True))
    assert sleeping < 0.7 * spinning


def test_threads_of_other_libraries_are_told_to_sleep():
    times = []

    class LlvmOpenMP:
        @staticmethod
        def kmp_set_blocktime(milliseconds):
            times.append(milliseconds.value)

    idle_threads._spin_less("libomp", LlvmOpenMP())
    idle_threads._spin_less("vcomp", object())
    assert times == [0]


def test_no_threads_are_started_on_machines_with_very_many_cores(monkeypatch):
    class GnuOpenMP:
        @staticmethod
        def omp_get_num_procs():
            return idle_threads.MAX_CORES + 1

    monkeypatch.setattr(sys, "platform", "linux")
    before = threading.active_count()
    idle_threads._spin_less("libgomp", GnuOpenMP())
    assert threading.active_count() == before
