"""A training that is interrupted and resumed ends with the same weights, bit for bit, as one that is not."""

import csv
import hashlib
import json
import re
import subprocess
import sys

import lightning as L
import pytest
import safetensors.torch
import torch

from images import fill
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.model_folder import LAST_CHECKPOINT
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.checkpoint_file import load_checkpoint
from tigranet.training.checkpoints import training_fingerprint

ARCHITECTURE = "SC[2,2]-DP[30]-S[3]-FC[8]"


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return LabelledImages(torch.rand(30, 1, 8, 8, generator=generator), torch.arange(30) % 3)


def network():
    torch.manual_seed(0)
    return TIGraNet(ARCHITECTURE, 3)


def history_without_times(path):
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert all(float(row.pop("seconds")) >= 0 for row in rows)
    return rows


class Stop(Exception):
    pass


def stop_in_step(monkeypatch, epoch, step):
    from tigranet.training.lightning_module import ClassifierModule

    training_step = ClassifierModule.training_step

    def stopping_step(self, index):
        if (self.current_epoch, index) == (epoch, step):
            raise Stop
        return training_step(self, index)

    monkeypatch.setattr(ClassifierModule, "training_step", stopping_step)


REGULARISED = {
    "weight_decay": 0.1,
    "shift": 0.2,
    "flip": True,
    "tint": 0.1,
    "blur": 0.5,
    "cutout": 0.3,
    "dropout": 0.2,
    "average": 0.9,
}


@pytest.mark.parametrize("fields", [{}, REGULARISED], ids=["plain", "regularised"])
@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_training_that_is_interrupted_twice_ends_with_the_same_weights(tmp_path, monkeypatch, keep, fields):
    recipe = Recipe(epochs=6, batch_size=8, keep=keep, **fields)
    options = {"hardware": Hardware("cpu")}  # on a GPU a recorded step is replayed, which the test could not stop
    expected = fit(network(), data(), data(1), recipe, folder=tmp_path / "uninterrupted", **options).state_dict()
    options |= {"folder": tmp_path / "resumed", "resume": True}
    for epoch, step in ((2, 1), (5, 3)):
        with monkeypatch.context() as patch:
            stop_in_step(patch, epoch, step)
            with pytest.raises(Stop):
                fit(network(), data(), data(1), recipe, **options)
    resumed = fit(network(), data(), data(1), recipe, **options).state_dict()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    rows, resumed_rows = (
        history_without_times(tmp_path / name / "history.csv") for name in ("uninterrupted", "resumed")
    )
    assert rows == resumed_rows
    assert len(rows) == 6


def test_checkpoints_and_validation_do_not_change_the_weights(tmp_path):
    recipe = Recipe(epochs=3, batch_size=8)
    with_checkpoints = fit(network(), data(), data(1), recipe, folder=tmp_path).state_dict()
    without = fit(network(), data(), None, recipe).state_dict()
    assert all(torch.equal(with_checkpoints[name], without[name]) for name in without)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_finished_training_is_not_repeated(tmp_path, monkeypatch, average):
    recipe = Recipe(epochs=2, average=average)
    first = fit(network(), data(), data(1), recipe, folder=tmp_path).state_dict()
    stop_in_step(monkeypatch, 0, 0)
    second = fit(network(), data(), data(1), recipe, folder=tmp_path, resume=True).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


OTHER_NETWORKS = {
    "network": {"boundary": "torus"},
    "edges": {"diagonal": 0.3},
    "neighbours": {"neighbours": 4},
    "window": {"window": "disc"},
    "margin": {"margin": 2},
}


@pytest.mark.parametrize("difference", ["recipe", "images", *OTHER_NETWORKS])
def test_a_different_training_is_not_resumed(tmp_path, difference):
    fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path)
    recipe = Recipe(epochs=1, seed=7) if difference == "recipe" else Recipe(epochs=1)
    net = TIGraNet(ARCHITECTURE, 3, **OTHER_NETWORKS[difference]) if difference in OTHER_NETWORKS else network()
    with pytest.raises(ValueError, match=r"last\.ckpt'.* images, network, recipe or seed"):
        fit(net, data(5 if difference == "images" else 0), data(1), recipe, folder=tmp_path, resume=True)


def old_fingerprint(description, config, train, **recipe):
    """The hash of version 0.1, whose recipes have fewer fields and whose networks have no dropout and no window."""
    config = {name: value for name, value in config.items() if name not in ("window", "margin")}
    recipe = {
        "epochs": 2, "batch_size": 50, "learning_rate": 0.01, "schedule": "one-cycle", "jitter": 0.5, "zoom": 0.0,
        "stretch": 0.0, "warp": 0.0, "tone": 0.0, "as_is": 0.0, "smoothing": 0.0, "turned": False, "balanced": False,
        "keep": "last", "patience": None, "seed": 0,
    } | recipe  # fmt: skip
    digest = hashlib.sha256(f"{description} {config} {recipe}".encode())
    digest.update(train.images.numpy())
    digest.update(train.labels.numpy())
    return digest.hexdigest()


def test_checkpoints_of_older_versions_can_be_resumed():
    net, train = network(), data()
    description = repr(net).replace("\n  (dropout): Dropout(p=0.0, inplace=False)", "")
    description = description.replace("\n  (standardise_images): Identity()", "")
    assert not re.search("Dropout|Identity", description)
    recipe = Recipe(epochs=2, zoom=0.2)
    assert training_fingerprint(net, train, None, recipe) == old_fingerprint(description, net.config, train, zoom=0.2)


@pytest.mark.parametrize("name", REGULARISED)
def test_a_training_with_another_regularisation_is_another_training(name):
    recipes = Recipe(epochs=2), Recipe(epochs=2, **{name: REGULARISED[name]})
    first, second = (training_fingerprint(network(), data(), None, recipe) for recipe in recipes)
    assert first != second


def test_a_network_with_its_own_dropout_is_another_network():
    other = network()
    other.dropout.p = 0.25
    first, second = (training_fingerprint(net, data(), None, Recipe(epochs=2)) for net in (network(), other))
    assert first != second


def change_checkpoint(path, change):
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["callbacks"].clear(),
        lambda content: content["callbacks"]["Checkpoints"].update(history="none"),
        lambda content: content["callbacks"]["Checkpoints"].update(lowest="low"),
        lambda content: content["callbacks"]["Checkpoints"].update(history=[{"unknown": 1}]),
        lambda content: content["state_dict"].popitem(),
        lambda content: content.update(loops=5),
        lambda content: content.pop("averaged_state_dict"),
        lambda content: content["averaged_state_dict"].popitem(),
    ],
    ids=["no callback", "history", "lowest loss", "columns", "weights", "loops", "no averages", "averages"],
)
def test_wrong_content_is_an_error_before_the_training(tmp_path, change, monkeypatch):
    recipe = Recipe(epochs=1, average=0.9)
    fit(network(), data(), data(1), recipe, folder=tmp_path)
    change_checkpoint(tmp_path / LAST_CHECKPOINT, change)
    stop_in_step(monkeypatch, 0, 0)
    with pytest.raises(ValueError, match=r"last\.ckpt'.* Delete it"):
        fit(network(), data(), data(1), recipe, folder=tmp_path, resume=True)


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.unlink()])
def test_best_weights_that_are_lost_are_an_error_before_the_training(tmp_path, damage, monkeypatch):
    """The training would otherwise fail at its end."""
    recipe = Recipe(epochs=2, keep="best")
    fit(network(), data(), data(1), recipe, folder=tmp_path)
    damage(tmp_path / "best.ckpt")
    stop_in_step(monkeypatch, 0, 0)
    with pytest.raises(ValueError, match=r"best\.ckpt'"):
        fit(network(), data(), data(1), recipe, folder=tmp_path, resume=True)


def test_checkpoints_are_replaced_through_links_and_leave_no_other_file(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LAST_CHECKPOINT).symlink_to("../disk/file")
    fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path / "run")
    assert (tmp_path / "run" / LAST_CHECKPOINT).is_symlink()
    assert load_checkpoint(tmp_path / "disk" / "file")["epoch"] == 0
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["best.ckpt", "history.csv", "last.ckpt"]


def test_a_disk_that_is_full_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    """Lightning copies a checkpoint from the folder for temporary files, which may fail in the middle."""
    fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path)
    before = (tmp_path / LAST_CHECKPOINT).read_bytes()

    def half_a_file(trainer, path, *_, **__):
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(L.Trainer, "save_checkpoint", half_a_file)
    with pytest.raises(OSError, match="No space left"):
        fit(network(), data(), data(1), Recipe(epochs=1, seed=1), folder=tmp_path)
    assert (tmp_path / LAST_CHECKPOINT).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.ckpt", "history.csv", "last.ckpt"]


@pytest.mark.parametrize("content", [b"no checkpoint", b""])
def test_a_damaged_checkpoint_is_an_error_with_its_path_and_the_remedy(tmp_path, content):
    (tmp_path / LAST_CHECKPOINT).write_bytes(content)
    with pytest.raises(ValueError, match=r"last\.ckpt'.* Delete it"):
        fit(network(), data(), data(1), Recipe(epochs=1), folder=tmp_path, resume=True)


KILL_REPEATEDLY = """
import json, os, random, shutil, signal, sys, time
import torch
from safetensors.torch import load_file
torch.set_num_threads(1)
from tigranet import TIGraNet, cli

folder, out = sys.argv[1:]
options = ["--epochs", "12", "--architecture", "SC[2,2]-DP[30]-S[3]-FC[8]", "--batch-size", "10", "--keep", "best"]

def start(output):
    child = os.fork()
    if child:
        return child
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.argv = ["tigranet", "--device", "cpu", "train", folder, "-o", output, "--resume", *options]
    try:
        cli.main()
    except SystemExit as stopped:
        os._exit(stopped.code or 0)
    os._exit(0)

def is_running(child):
    return os.waitpid(child, os.WNOHANG)[0] == 0

before = time.monotonic()
status = os.waitpid(start(out + "/uninterrupted"), 0)[1]
assert status == 0, status
duration = time.monotonic() - before
random.seed(0)
kills = 0
while kills < 10:
    child = start(out + "/killed")
    time.sleep(random.uniform(0.02, 0.6) * duration)
    if is_running(child):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    try:
        TIGraNet.from_pretrained(out + "/killed")
        is_finished = True
    except (OSError, ValueError):
        is_finished = False
    checkpoint = out + "/killed/checkpoints/last.ckpt"
    if os.path.exists(checkpoint):
        torch.load(checkpoint, weights_only=True)
    if is_finished:  # start again, and wait less: the first command may have compiled kernels
        duration *= 0.7
        killed, expected = (load_file(out + name + "/model.safetensors") for name in ("/killed", "/uninterrupted"))
        assert all(torch.equal(killed[name], expected[name]) for name in expected)
        shutil.rmtree(out + "/killed")
status = os.waitpid(start(out + "/killed"), 0)[1]
assert status == 0, status
print(json.dumps({"kills": kills}))
"""


def load_weights(folder):
    return safetensors.torch.load_file(folder / "model.safetensors")


def test_a_command_that_is_killed_ten_times_ends_with_the_same_weights(tmp_path, warm_process):
    """After each SIGKILL, the checkpoint is readable, and a model folder that loads is complete."""
    folder = fill(tmp_path / "photos", {"a": 20, "b": 20})
    process = warm_process.run(KILL_REPEATEDLY, folder, tmp_path)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["kills"] == 10
    expected, killed = (load_weights(tmp_path / name) for name in ("uninterrupted", "killed"))
    assert all(torch.equal(expected[name], killed[name]) for name in expected)


def test_two_processes_give_the_weights_of_one(tmp_path, warm_process):
    """Each process works on half of every batch, with the augmentation of the whole batch.

    The last batch has an odd number of images. Dropout is not used, because each process draws its own numbers.
    """
    folder = fill(tmp_path / "photos", {"a": 24, "b": 23})
    options = ["--epochs", "2", "--architecture", ARCHITECTURE, "--batch-size", "10", "--accelerator", "cpu", "--json"]
    options += [
        "--weight-decay",
        "0.1",
        "--shift",
        "0.1",
        "--flip",
        "--blur",
        "0.5",
        "--cutout",
        "0.3",
        "--average",
        "0.8",
    ]
    results = {}
    program = "import torch; torch.set_num_threads(1)\nfrom tigranet.cli import main; main()"
    launcher = tmp_path / "launch.py"  # the first process starts the second by its script
    launcher.write_text(program)
    command = ["train", str(folder), *options, "-o", str(tmp_path / "two"), "--devices", "2", "--strategy", "ddp"]
    processes = {
        "one": warm_process.run(program, "train", folder, *options, "-o", tmp_path / "one"),
        "two": subprocess.run(
            [sys.executable, str(launcher), *command], capture_output=True, text=True, timeout=300, check=False
        ),
    }
    for name, process in processes.items():
        assert process.returncode == 0, process.stderr
        results[name] = json.loads(process.stdout)
    assert results["one"]["train"] == results["two"]["train"]
    one, two = (load_weights(tmp_path / name) for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-4)
