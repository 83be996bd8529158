"""Train on shards with Ray Train.

``python examples/engines/ray_train.py SHARDS MODEL [EPOCHS]`` trains with two workers, which divide every batch. SHARDS
and MODEL are folders that all machines reach by the same path. If a worker dies, Ray starts all of them again, and they
continue from the last checkpoint in MODEL.
"""

import sys
from pathlib import Path
from typing import Any

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

WORKERS, MACHINES = 2, 1


def train_worker(config: dict[str, Any]) -> None:
    """Train in one of the processes that Ray has started and connected."""
    from tigranet.training import Hardware
    from tigranet.workflows.train import train

    train(
        config["shards"],
        config["model"],
        architecture="SC[3,3]-S[4]-FC[10]",
        recipe={"epochs": config["epochs"]},
        hardware=Hardware("cpu", devices=WORKERS // MACHINES, nodes=MACHINES, strategy="ddp"),
        resume=True,
        checkpoint_steps=100,
    )


def main(shards: str, model: str, epochs: str = "20") -> None:
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    folder = Path(model).resolve()
    trainer = TorchTrainer(
        train_worker,
        train_loop_config={"shards": str(Path(shards).resolve()), "model": str(folder), "epochs": int(epochs)},
        scaling_config=ScalingConfig(num_workers=WORKERS, resources_per_worker={"CPU": 1}),
        run_config=RunConfig(
            name=folder.name, storage_path=str(folder.parent / "ray"), failure_config=FailureConfig(max_failures=3)
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    main(*sys.argv[1:4])
