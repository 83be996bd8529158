"""A training on shards is the same training in memory, bit for bit, also when it is killed and continues."""

import json

import pytest
import torch
from safetensors.torch import load_file

from images import fill
from tigranet import TIGraNet
from tigranet.data import load_user_data
from tigranet.model_folder import LAST_CHECKPOINT
from tigranet.training import Recipe, fit
from tigranet.training.checkpoint_file import load_checkpoint
from tigranet.training.checkpoints import Checkpoints
from tigranet.training.lightning_module import EPOCH_STATE
from tigranet.workflows.shard_images import write_shards

ARCHITECTURE = "SC[2,2]-S[2]-FC[3]"
RECIPES = {
    "plain": {},
    "augmented": {"zoom": 0.2, "tone": 0.3, "flip": True, "cutout": 0.2, "balanced": True, "keep": "best"},
    "in parts": {"accumulate": 3, "average": 0.8},
}
STEPS = 3
"""Number of batches in an epoch."""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("photos"), {"a": 15, "b": 14}, size=(7, 8))


@pytest.fixture(scope="module")
def shards(photos, tmp_path_factory):
    return write_shards(photos, tmp_path_factory.mktemp("shards"), images_per_shard=8, workers=1).folder


@pytest.fixture(scope="module")
def in_memory(photos):
    return load_user_data(photos)[0]


@pytest.fixture(scope="module")
def in_shards(shards):
    return load_user_data(shards)[0]


def train(data, settings, **options):
    torch.manual_seed(0)
    network = TIGraNet(ARCHITECTURE, 2)
    recipe = Recipe(2, 8, learning_rate=1e-3, seed=5, **settings)
    return fit(network, data.train, data.validation, recipe, **options).state_dict()


def assert_equal(result, expected):
    for name, tensor in expected.items():
        assert torch.equal(result[name], tensor), name


@pytest.fixture(scope="module")
def weights(in_memory):
    """The weights of trainings in memory, by recipe."""
    return {name: train(in_memory, settings) for name, settings in RECIPES.items()}


@pytest.mark.parametrize("name", RECIPES)
def test_the_weights_are_those_of_a_training_in_memory(weights, in_shards, name):
    assert_equal(train(in_shards, RECIPES[name]), weights[name])


class Stop(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "batches"),
    [("plain", batches) for batches in range(1, 2 * STEPS)] + [("augmented", 2), ("augmented", 4), ("in parts", 4)],
)
def test_a_training_continues_after_every_batch(weights, in_shards, tmp_path, monkeypatch, name, batches):
    """The weights are those without the interruption, also if it comes in the middle of an epoch."""
    settings, expected = RECIPES[name], weights[name]
    accumulate = settings.get("accumulate", 1)
    write = Checkpoints.on_train_batch_end

    def stop(self, trainer, *rest):
        write(self, trainer, *rest)
        if trainer.global_step == batches:
            raise Stop

    options = {"folder": tmp_path, "resume": True, "checkpoint_steps": 1}
    monkeypatch.setattr(Checkpoints, "on_train_batch_end", stop)
    with pytest.raises(Stop):
        train(in_shards, settings, **options)
    monkeypatch.undo()
    checkpoint = load_checkpoint(tmp_path / LAST_CHECKPOINT) if batches != STEPS else {}
    if batches != STEPS:  # the checkpoint after the last batch comes with the end of the epoch
        assert checkpoint["global_step"] == batches
        assert checkpoint[EPOCH_STATE]["indices"]["next"] == batches % STEPS * accumulate
    assert_equal(train(in_shards, settings, **options), expected)


def test_the_images_of_other_shards_are_another_training(in_shards, tmp_path):
    train(in_shards, {}, folder=tmp_path)
    order = torch.arange(len(in_shards.train.labels)).flip(0)
    other = in_shards.train._replace(images=in_shards.train.images.select_rows(order))
    recipe = Recipe(2, 8, learning_rate=1e-3, seed=5)
    with pytest.raises(ValueError, match="different training"):
        fit(TIGraNet(ARCHITECTURE, 2), other, in_shards.validation, recipe, folder=tmp_path, resume=True)


KILL_REPEATEDLY = """
import json, os, random, signal, sys, time
import tigranet.workflows.train
from tigranet.cli import main

shards, out, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = ["--epochs", "15", "--architecture", "SC[2,2]-S[2]-FC[3]", "--batch-size", "4", "--accelerator", "cpu"]

def start():
    child = os.fork()
    if child:
        return child
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.argv = ["tigranet", "train", shards, "-o", out, "--resume", "--checkpoint-steps", "1", *options]
    try:
        main()
    except SystemExit as stopped:
        os._exit(stopped.code or 0)
    os._exit(0)

random.seed(0)
checkpoint, killed_inside = os.path.join(out, "checkpoints", "last.ckpt"), 0
for _ in range(kills):
    before = os.stat(checkpoint).st_mtime_ns if os.path.exists(checkpoint) else 0
    child = start()
    while not os.path.exists(checkpoint) or os.stat(checkpoint).st_mtime_ns == before:
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.2))
    os.kill(child, signal.SIGKILL)
    killed_inside += os.waitpid(child, 0)[1] == signal.SIGKILL
status = os.waitpid(start(), 0)[1]
assert status == 0, status
print(json.dumps({"killed": killed_inside}))
"""


def test_a_command_that_is_killed_at_random_moments_ends_with_the_same_weights(photos, shards, tmp_path, warm_process):
    process = warm_process.run(KILL_REPEATEDLY, shards, tmp_path / "killed", 2)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["killed"] == 2
    options = ["--epochs", "15", "--architecture", ARCHITECTURE, "--batch-size", "4", "--accelerator", "cpu"]
    process = warm_process.tigranet("train", photos, "-o", tmp_path / "in memory", *options)
    assert process.returncode == 0, process.stderr
    killed, expected = (load_file(tmp_path / name / "model.safetensors") for name in ("killed", "in memory"))
    assert_equal(killed, expected)
