"""The example for Ray Train gives the network of one process."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from images import fill
from tigranet.training import Hardware
from tigranet.workflows.shard_images import write_shards
from tigranet.workflows.train import train

EXAMPLE = Path(__file__).parents[2] / "examples" / "engines" / "ray_train.py"


def test_two_workers_of_ray_train_give_the_weights_of_one_process(tmp_path):
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed: 'make test-engines' installs it")
    if "TIGRANET_ENGINES" not in os.environ:
        pytest.skip("takes a minute: 'make test-engines' runs it")
    photos = fill(tmp_path / "photos", {"a": 24, "b": 23}, size=(8, 8))
    shards = write_shards(photos, tmp_path / "shards", workers=1).folder
    subprocess.run([sys.executable, EXAMPLE, shards, tmp_path / "model", "3"], check=True, timeout=600)
    options = {"architecture": "SC[3,3]-S[4]-FC[10]", "recipe": {"epochs": 3}, "hardware": Hardware("cpu")}
    expected = train(photos, **options).network.state_dict()
    result = load_file(tmp_path / "model" / "model.safetensors")
    for name, tensor in expected.items():
        torch.testing.assert_close(result[name], tensor, rtol=1e-4, atol=1e-5)
