"""Trainings in several processes, which PyTorch's elastic launcher, the one of torchrun, starts and restarts."""

import json

import pytest
import torch
from safetensors.torch import load_file

from images import fill

PROGRAM = """
import json, os, signal, sys, warnings
from pathlib import Path

import torch
import torch._dynamo  # Each process would import it.
from safetensors.torch import save_file
from torch import nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tigranet import TIGraNet
from tigranet.data import load_user_data
from tigranet.training import Hardware, Recipe, fit
from tigranet.training.checkpoints import Checkpoints
from tigranet.workflows.shard_images import write_shards

torch.set_num_threads(1)
os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # otherwise restarts find addresses of the processes before
photos, out = Path(sys.argv[1]), Path(sys.argv[2])

def network(kind):
    torch.manual_seed(0)
    if kind == "tigranet":
        return TIGraNet("SC[2,2]-S[2]-FC[3]", 2)
    layers = nn.Conv2d(1, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2)
    return nn.Sequential(*layers)

def train(kind, data, name, processes, accumulate=1, deaths=0):
    '''Train in this process, and let the last process die in the first attempts.'''
    warnings.simplefilter("ignore")
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) < deaths:
        write = Checkpoints.on_train_batch_end
        def die(self, trainer, *rest):
            write(self, trainer, *rest)
            if trainer.global_rank == processes - 1:
                os.kill(os.getpid(), signal.SIGKILL)
        Checkpoints.on_train_batch_end = die
    recipe = Recipe(2, 10, accumulate=accumulate, zoom=0.1, average=0.5, learning_rate=1e-3, keep="best")
    hardware = Hardware("cpu", devices=processes, strategy="ddp" if processes > 1 else "auto")
    folder = out / f"{name} checkpoints"
    module = network(kind)
    fit(module, data.train, data.validation, recipe, hardware=hardware, folder=folder, resume=True, checkpoint_steps=1)
    if int(os.environ.get("RANK", 0)) == 0:
        save_file(module.state_dict(), out / f"{name}.safetensors")

def launch(kind, data, name, processes, accumulate=1, deaths=0):
    config = LaunchConfig(
        1, 1, processes, run_id=name, rdzv_backend="c10d", rdzv_endpoint="127.0.0.1:0", start_method="fork",
        max_restarts=deaths, monitor_interval=0.02,
    )
    elastic_launch(config, train)(kind, data, name, processes, accumulate, deaths)

write_shards(photos, out / "shards", images_per_shard=16, workers=1)
in_memory, in_shards = (load_user_data(path)[0] for path in (photos, out / "shards"))
for task in json.loads(sys.argv[3]):
    launch(task["kind"], in_shards, task["name"], task["processes"], task["accumulate"], task["deaths"])
for kind in ("tigranet", "baseline"):
    for accumulate in (1, 2):
        train(kind, in_memory, f"{kind} in memory {accumulate}", 1, accumulate)
"""

TASKS = [
    {"kind": kind, "processes": processes, "accumulate": accumulate, "deaths": deaths}
    for kind, processes, accumulate, deaths in (
        ("tigranet", 2, 1, 1),
        ("baseline", 4, 2, 0),
    )
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, warm_process):
    folder = tmp_path_factory.mktemp("several-processes")
    photos = fill(folder / "photos", {"a": 15, "b": 14}, size=(8, 8))
    tasks = [task | {"name": f"task {number}"} for number, task in enumerate(TASKS)]
    process = warm_process.run(PROGRAM, photos, folder, json.dumps(tasks))
    assert process.returncode == 0, process.stderr
    return folder


@pytest.mark.parametrize("number", range(len(TASKS)), ids=[str(task) for task in TASKS])
def test_several_processes_end_with_the_weights_of_one(trained, number):
    """The batch size is that of all processes together, and the last batch has an odd number of images.

    Batch statistics are those of the whole batch, or of a part of it with ``accumulate``. After a process was killed,
    all are started again and continue from the last checkpoint.
    """
    task = TASKS[number]
    expected = load_file(trained / f"{task['kind']} in memory {task['accumulate']}.safetensors")
    result = load_file(trained / f"task {number}.safetensors")
    for name in expected:
        torch.testing.assert_close(result[name], expected[name], rtol=1e-4, atol=1e-5)


def test_accumulated_parts_are_normalised_by_themselves(trained):
    """So they give other weights than the whole batch: the comparison above can fail."""
    whole, parts = (load_file(trained / f"baseline in memory {accumulate}.safetensors") for accumulate in (1, 2))
    assert any(not torch.allclose(whole[name], parts[name], rtol=1e-3, atol=1e-4) for name in whole)
