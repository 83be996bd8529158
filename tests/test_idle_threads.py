"""How the threads of OpenMP wait: the environment of new processes, and processes that load PyTorch first."""

import json
import os
import subprocess
import sys

import pytest

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

sys.meta_path.insert(0, Recorder())
import tigranet
loaded = "torch" in sys.modules
tigranet.GridLaplacian
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


def test_nothing_is_changed_if_pytorch_is_loaded_already():
    code = "import json, os, threading, torch, tigranet; print(json.dumps(os.environ.get('OMP_WAIT_POLICY')))"
    assert run(code) is None
