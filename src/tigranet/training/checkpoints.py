"""Checkpoints of a training in progress, to resume it from, and a table of its losses."""

import csv
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Checkpoint
from torch import Tensor, nn

from tigranet.atomic_files import atomic_write
from tigranet.data.dataset import LabelledImages
from tigranet.data.shards.stored_images import StoredImages
from tigranet.model_folder import HISTORY, LAST_CHECKPOINT
from tigranet.training.atomic_checkpoint_io import AtomicCheckpointIO
from tigranet.training.checkpoint_file import REMEDY, load_checkpoint
from tigranet.training.recipe import ADDED_FIELDS, Recipe

BEST_CHECKPOINT = "best.ckpt"
HISTORY_COLUMNS = ["epoch", "loss", "validation_loss", "validation_accuracy", "seconds"]
UNUSED_LAYERS = re.compile(r"\n *\((dropout\): Dropout\(p=0(\.0)?, inplace=False\)|standardise_images\): Identity\(\))")
"""Lines of layers that do nothing in the description of a network. Older versions do not have these layers."""
ADDED_CONFIG = {"window": "none", "margin": 0}
"""Values in the configuration of a network that change nothing. Older versions do not have them."""


class Checkpoints(Checkpoint):
    """Write checkpoints every few epochs, within long epochs and after the last one, and a table of the epochs.

    ``last.ckpt`` is the most recent checkpoint and ``best.ckpt`` the one of the lowest validation loss. Both hold
    everything that is needed to resume. ``history.csv`` has the losses, the validation accuracy and the seconds of each
    epoch, measured from the end of the previous one, so that the time between epochs is included.

    Each file is replaced atomically. Checkpoints are loaded with ``weights_only=True``, so loading runs no code from
    them.

    Args:
        folder: The folder to write to.
        fingerprint: The hash of the training, see :func:`training_fingerprint`.
        steps: Number of steps of an epoch between checkpoints within the epoch. None writes none.
    """

    def __init__(self, folder: Path, fingerprint: str, steps: int | None = None) -> None:
        self.folder, self.fingerprint, self.steps = folder, fingerprint, steps
        self.lowest_loss = math.inf
        self.history: list[dict[str, float]] = []
        self.epoch_start = perf_counter()

    def setup(self, trainer: L.Trainer, *_: Any, **__: Any) -> None:
        """Let the trainer replace checkpoints atomically.

        Args:
            trainer: The trainer that will run.
        """
        trainer.strategy.checkpoint_io = AtomicCheckpointIO()

    def on_train_start(self, *_: Any) -> None:
        """Start the clock of the first epoch."""
        self.epoch_start = perf_counter()

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write a checkpoint in the middle of an epoch, every few steps.

        Args:
            trainer: The trainer that runs.
            pl_module: Ignored.
            outputs: Ignored.
            batch: Ignored.
            batch_idx: The index of the batch in this epoch.
        """
        done = batch_idx + 1
        if (
            self.steps is not None
            and done % (self.steps * trainer.accumulate_grad_batches) == 0
            and done < trainer.num_training_batches
        ):
            trainer.save_checkpoint(self.folder / LAST_CHECKPOINT)

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Add a row to the history and, every few epochs, write the files.

        Args:
            trainer: The trainer that runs.
        """
        epoch = trainer.current_epoch + 1
        validated = epoch % (trainer.check_val_every_n_epoch or 1) == 0
        # Without a validation in this epoch, Lightning still holds the validation metrics of an earlier one.
        metrics = {
            name: float(value) for name, value in trainer.callback_metrics.items() if validated or name == "loss"
        }
        previous, self.epoch_start = self.epoch_start, perf_counter()
        self.history.append({"epoch": epoch, **metrics, "seconds": round(self.epoch_start - previous, 3)})
        if validated or epoch == trainer.max_epochs:
            if metrics.get("validation_loss", math.inf) < self.lowest_loss:
                self.lowest_loss = metrics["validation_loss"]
                trainer.save_checkpoint(self.folder / BEST_CHECKPOINT)
            trainer.save_checkpoint(self.folder / LAST_CHECKPOINT)
            if trainer.is_global_zero:
                self._write_history()

    def _write_history(self) -> None:
        with atomic_write(self.folder / HISTORY) as file:
            table = csv.DictWriter(file, HISTORY_COLUMNS, restval="", lineterminator="\n")
            table.writeheader()
            table.writerows(self.history)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that is stored in each checkpoint."""
        return {"about": self.fingerprint, "lowest": self.lowest_loss, "history": self.history}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint.

        Args:
            state: The value of :meth:`state_dict`.
        """
        self.lowest_loss, self.history = state["lowest"], state["history"]


def training_fingerprint(
    module: nn.Module, train: LabelledImages, validation: LabelledImages | None, recipe: Recipe
) -> str:
    """Return a hash of everything that determines the result of a training, apart from the initial weights.

    Args:
        module: The network.
        train: The training images.
        validation: The validation images, if any.
        recipe: The recipe.

    Returns:
        A hexadecimal hash. Trainings with different hashes end with different weights. A training that uses nothing
        that older versions lack has the hash of these versions, so that their checkpoints can be resumed.
    """
    layers = UNUSED_LAYERS.sub("", str(module))
    settings = {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)
        if field.name not in ADDED_FIELDS or getattr(recipe, field.name) != field.default
    }
    config = {
        name: value
        for name, value in getattr(module, "config", {}).items()
        if name not in ADDED_CONFIG or value != ADDED_CONFIG[name]
    }
    digest = hashlib.sha256(f"{layers} {config} {settings}".encode())
    for tensor in (*train, *(validation or ())):
        if isinstance(tensor, StoredImages):
            digest.update(tensor.fingerprint)
        elif tensor is not None:
            digest.update(tensor.contiguous().cpu().numpy())
    return digest.hexdigest()


def checkpoint_to_resume(
    folder: Path,
    fingerprint: str,
    expected_state: Mapping[str, Tensor] | None = None,
    needs_best: bool = False,
    averaged: bool = False,
) -> Path | None:
    """Return the checkpoint in a folder from which a training can be resumed.

    Args:
        folder: The folder with the checkpoints.
        fingerprint: The hash of the training that is to be resumed.
        expected_state: The state of the module that is trained, which the checkpoint must fit. None compares nothing.
        needs_best: Whether the best weights are needed at the end, so that they must be readable too.
        averaged: Whether the training averages its weights, so that the checkpoint must have the averages.

    Returns:
        The path of the checkpoint, or None if there is none.

    Raises:
        ValueError: If a checkpoint cannot be read, or belongs to a different training.
    """
    path = folder / LAST_CHECKPOINT
    if not path.exists():
        return None
    stored = load_checkpoint(path)["callbacks"].get("Checkpoints")
    if not _is_state(stored):
        raise ValueError(f"cannot read the checkpoint '{path}': it has no losses of earlier epochs. {REMEDY}")
    if stored["about"] != fingerprint:
        raise ValueError(
            f"the checkpoint '{path}' belongs to a different training (its images, network, recipe or seed differ): "
            "use the original settings, or train without resuming"
        )
    load_checkpoint(path, expected_state, averaged)
    if needs_best and stored["lowest"] < math.inf:
        load_checkpoint(folder / BEST_CHECKPOINT, expected_state, averaged)
    return path


def _is_state(stored: Any) -> bool:
    """Whether a value of a checkpoint is one of :meth:`Checkpoints.state_dict`."""
    return (
        isinstance(stored, dict)
        and stored.keys() == {"about", "lowest", "history"}
        and isinstance(stored["about"], str)
        and isinstance(stored["lowest"], float)
        and isinstance(stored["history"], list)
        and all(isinstance(row, dict) and row.keys() <= set(HISTORY_COLUMNS) for row in stored["history"])
    )
