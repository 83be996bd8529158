"""A training that was broken off ends, resumed, with the weights it would have ended with, bit for bit."""

import csv
import json
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from images import fill
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.training import Recipe, fit
from tigranet.training.checkpoints import LAST

SMALL = "SC[2,2]-DP[30]-S[3]-FC[8]"


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return LabelledImages(torch.rand(30, 1, 8, 8, generator=generator), torch.arange(30) % 3)


def network():
    torch.manual_seed(0)
    return TIGraNet(SMALL, 3)


def untimed(history):
    rows = list(csv.DictReader(history.read_text().splitlines()))
    assert all(float(row.pop("seconds")) >= 0 for row in rows)
    return rows


class Stop(Exception):
    pass


def stop_in_epoch(monkeypatch, epoch, step):
    from tigranet.training.lightning_module import ClassifierModule

    plain = ClassifierModule.training_step

    def stopping(self, number):
        if (self.current_epoch, number) == (epoch, step):
            raise Stop
        return plain(self, number)

    monkeypatch.setattr(ClassifierModule, "training_step", stopping)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_broken_off_twice_and_resumed_it_ends_the_same(tmp_path, monkeypatch, keep):
    recipe = Recipe(epochs=6, batch_size=8, keep=keep)
    whole = fit(network(), data(), data(1), recipe, folder=tmp_path / "whole").state_dict()
    for epoch, step in ((2, 1), (5, 3)):
        with monkeypatch.context() as patch:
            stop_in_epoch(patch, epoch, step)
            with pytest.raises(Stop):
                fit(network(), data(), data(1), recipe, folder=tmp_path / "broken", resume=True)
    resumed = fit(network(), data(), data(1), recipe, folder=tmp_path / "broken", resume=True).state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    whole, broken = (untimed(tmp_path / name / "history.csv") for name in ("whole", "broken"))
    assert whole == broken
    assert len(whole) == 6


def test_checkpoints_change_nothing(tmp_path):
    recipe = Recipe(epochs=3, batch_size=8)
    with_them = fit(network(), data(), data(1), recipe, folder=tmp_path).state_dict()
    without = fit(network(), data(), None, recipe).state_dict()
    assert all(torch.equal(with_them[name], without[name]) for name in without)


def test_a_finished_training_is_not_done_again(tmp_path, monkeypatch):
    recipe = Recipe(epochs=2)
    first = fit(network(), data(), data(1), recipe, folder=tmp_path).state_dict()
    stop_in_epoch(monkeypatch, 0, 0)
    again = fit(network(), data(), data(1), recipe, folder=tmp_path, resume=True).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


OTHERS = {"network": {"boundary": "torus"}, "edges": {"diagonal": 0.3}, "neighbours": {"neighbours": 4}}


@pytest.mark.parametrize("other", ["recipe", "images", *OTHERS])
def test_another_training_is_not_resumed(tmp_path, other):
    fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path)
    recipe = Recipe(epochs=1, seed=7) if other == "recipe" else Recipe(epochs=1)
    net = TIGraNet(SMALL, 3, **OTHERS[other]) if other in OTHERS else network()
    with pytest.raises(ValueError, match=r"is of another training \(other images, network, recipe or seed\)"):
        fit(net, data(5 if other == "images" else 0), data(1), recipe, folder=tmp_path, resume=True)


def test_a_damaged_checkpoint_is_named_with_the_cure(tmp_path):
    (tmp_path / LAST).write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match=r"last.ckpt' cannot be read, delete it to start anew"):
        fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path, resume=True)


KILLED = """
import json, os, random, shutil, signal, sys, time
import torch
from safetensors.torch import load_file
torch.set_num_threads(1)
from tigranet import TIGraNet, cli
import tigranet.workflows.train, tigranet.estimator, matplotlib.figure, tigranet.figures.rotated_examples

folder, out = sys.argv[1:]
options = ["--epochs", "12", "--architecture", "SC[2,2]-DP[30]-S[3]-FC[8]", "--batch-size", "10", "--keep", "best"]

def start(output):
    child = os.fork()
    if child:
        return child
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.argv = ["tigranet", "train", folder, "-o", output, "--resume", *options]
    try:
        cli.main()
    except SystemExit as stopped:
        os._exit(stopped.code or 0)
    os._exit(0)

def state(child):
    pid, status = os.waitpid(child, os.WNOHANG)
    return None if pid == 0 else status

before = time.monotonic()
status = os.waitpid(start(out + "/whole"), 0)[1]
assert status == 0, status
length = time.monotonic() - before
random.seed(0)
kills = 0
while kills < 10:
    child = start(out + "/killed")
    time.sleep(random.uniform(0.02, 0.6) * length)
    if state(child) is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    try:
        TIGraNet.from_pretrained(out + "/killed")
        loads = True
    except (OSError, ValueError):
        loads = False
    checkpoint = out + "/killed/checkpoints/last.ckpt"
    if os.path.exists(checkpoint):
        torch.load(checkpoint, weights_only=True)
    if loads:  # it is finished; begin anew
        killed, whole = (load_file(out + name + "/model.safetensors") for name in ("/killed", "/whole"))
        assert all(torch.equal(killed[name], whole[name]) for name in whole)
        shutil.rmtree(out + "/killed")
status = os.waitpid(start(out + "/killed"), 0)[1]
assert status == 0, status
print(json.dumps({"kills": kills}))
"""


def test_killed_at_ten_moments_it_ends_the_same(tmp_path):
    """Through the command, with SIGKILL: no checkpoint is unreadable, no model folder loads that is not the whole."""
    folder = fill(tmp_path / "photos", {"a": 20, "b": 20})
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(folder), str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["kills"] == 10
    whole, killed = (safetensors.torch.load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(whole[name], killed[name]) for name in whole)


def test_two_processes_end_where_one_does(tmp_path):
    """Two processes of one machine, each with half of every batch, the last batch uneven."""
    folder = fill(tmp_path / "photos", {"a": 24, "b": 23})
    options = ["--epochs", "2", "--architecture", SMALL, "--batch-size", "10", "--accelerator", "cpu", "--json"]
    found = {}
    for name, more in (("one", []), ("two", ["--devices", "2", "--strategy", "ddp"])):
        launcher = tmp_path / "launch.py"
        launcher.write_text("import torch; torch.set_num_threads(1)\nfrom tigranet.cli import main; main()")
        command = [sys.executable, str(launcher), "train", str(folder), "-o", str(tmp_path / name), *options, *more]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert finished.returncode == 0, finished.stderr
        found[name] = json.loads(finished.stdout)
    assert found["one"]["train"] == found["two"]["train"]
    one, two = (safetensors.torch.load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-4)
