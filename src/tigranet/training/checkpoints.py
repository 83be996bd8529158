"""What is kept of a training while it runs: to go on from, and to look at."""

import csv
import hashlib
import math
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Checkpoint
from torch import nn

from tigranet.atomic_files import atomic_write
from tigranet.data.dataset import LabelledImages
from tigranet.model_folder import LAST_CHECKPOINT
from tigranet.training.recipe import Recipe

LAST, BEST, HISTORY = LAST_CHECKPOINT, "best.ckpt", "history.csv"


class Checkpoints(Checkpoint):
    """Every few epochs, and at the end, writes ``last.ckpt`` to ``folder``, and ``best.ckpt`` where the
    validation loss is the lowest so far: both with all that is needed to go on. ``history.csv`` has a row an epoch,
    with the seconds from the end of the one before, what is done between epochs included.

    A file replaces the one before it when it is whole. Nothing in it is run when it is read.
    """

    def __init__(self, folder: Path, about: str) -> None:
        self.folder, self.about = folder, about
        self.lowest = math.inf
        self.history: list[dict[str, float]] = []
        self.clock = perf_counter()

    def on_train_start(self, *_: Any) -> None:
        self.clock = perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        epoch = trainer.current_epoch + 1
        due = epoch % (trainer.check_val_every_n_epoch or 1) == 0
        seen = {name: float(value) for name, value in trainer.callback_metrics.items() if due or name == "loss"}
        before, self.clock = self.clock, perf_counter()
        self.history.append({"epoch": epoch, **seen, "seconds": round(self.clock - before, 3)})
        if due or epoch == trainer.max_epochs:
            if seen.get("validation_loss", math.inf) < self.lowest:
                self.lowest = seen["validation_loss"]
                trainer.save_checkpoint(self.folder / BEST)
            trainer.save_checkpoint(self.folder / LAST)
            if trainer.is_global_zero:
                with atomic_write(self.folder / HISTORY) as file:
                    names = ["epoch", "loss", "validation_loss", "validation_accuracy", "seconds"]
                    table = csv.DictWriter(file, names, restval="", lineterminator="\n")
                    table.writeheader()
                    table.writerows(self.history)

    def state_dict(self) -> dict[str, Any]:
        return {"about": self.about, "lowest": self.lowest, "history": self.history}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lowest, self.history = state["lowest"], state["history"]


def about(module: nn.Module, train: LabelledImages, validation: LabelledImages | None, recipe: Recipe) -> str:
    """What a training is of, in brief: two that differ in it do not end with the same weights."""
    digest = hashlib.sha256(f"{module} {getattr(module, 'config', {})} {asdict(recipe)}".encode())
    for tensor in (*train, *(validation or ())):
        if tensor is not None:
            digest.update(tensor.contiguous().cpu().numpy())
    return digest.hexdigest()


def unfinished(folder: Path, wanted: str) -> Path | None:
    """The checkpoint in ``folder`` to go on from, if there is one; it must be of the training ``wanted``."""
    path = folder / LAST
    if not path.exists():
        return None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)["callbacks"]["Checkpoints"]["about"]
    except Exception as error:  # of the many kinds that a damaged file may raise
        reason = str(error).splitlines()[0]
        raise ValueError(f"'{path}' cannot be read, delete it to start anew: {reason}") from None
    if found != wanted:
        raise ValueError(
            f"'{path}' is of another training (other images, network, recipe or seed): "
            "give what it was begun with, or train without resuming"
        )
    return path
