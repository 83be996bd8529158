"""The one ``fit`` for every network."""

import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import TensorBoardLogger
from rich.console import Console
from torch import nn

from tigranet.choices import Log as Log
from tigranet.data.dataset import LabelledImages
from tigranet.training.checkpoints import BEST, Checkpoints, about, unfinished
from tigranet.training.cuda_graph import CudaGraphClassifierModule
from tigranet.training.hardware import Hardware
from tigranet.training.lightning_module import ClassifierModule, Diverged
from tigranet.training.process_state import left_as_it_was
from tigranet.training.progress import FitProgress
from tigranet.training.recipe import Recipe


def fit(
    module: nn.Module,
    train: LabelledImages,
    validation: LabelledImages | None,
    recipe: Recipe,
    console: Console | None = None,
    *,
    hardware: Hardware | None = None,
    folder: Path | None = None,
    resume: bool = False,
    log: Log = "csv",
) -> nn.Module:
    """Train ``module`` in place by ``recipe``, on ``hardware``; leave it there, in evaluation mode.

    Progress is drawn on ``console``, if one is given. The same recipe on the same machine gives the same weights,
    and the caller's process is left as it was, random numbers and all. Checkpoints and a table of losses go to
    ``folder``, if one is given, TensorBoard's files too if ``log`` says so. With ``resume``, a training that was broken
    off there goes on from its last checkpoint and ends with the weights it would have ended with.
    """
    hardware = hardware or Hardware()
    if log not in get_args(Log):
        raise ValueError(f"log is one of {', '.join(get_args(Log))}, got {log!r}")
    if resume and folder is None:
        raise ValueError("a training goes on from the folder of its checkpoints: give the folder")
    best = recipe.keep == "best" or recipe.patience is not None
    _check("training", train)
    if validation is not None:
        _check("validation", validation)
    elif best:
        raise ValueError(
            "the best weights are those of the lowest validation loss: give validation images, or keep the last"
        )
    if recipe.balanced:
        train = train.balanced()
    with (
        warnings.catch_warnings(),
        left_as_it_was(),
        nullcontext(folder) if folder else tempfile.TemporaryDirectory() as kept,
    ):
        warnings.filterwarnings("ignore", ".*have no `val_dataloader`.*")  # as was asked for
        warnings.filterwarnings("ignore", ".*LeafSpec.*")  # Lightning's own, with the newest PyTorch
        warnings.filterwarnings("ignore", ".*GPU available but not used.*")  # as was asked for, too
        warnings.filterwarnings("ignore", ".*srun.*")  # whoever has a queue need not use it
        where = Path(kept)
        where.mkdir(parents=True, exist_ok=True)
        begun = about(module, train, validation, recipe) if folder else ""
        callbacks: list[L.Callback] = [Checkpoints(where, begun)] if folder or best else []
        if recipe.patience:
            checks = -(-recipe.patience // recipe.check_every)
            callbacks.append(EarlyStopping("validation_loss", patience=checks))
        if console:
            callbacks.append(FitProgress(console))
        trainer = L.Trainer(
            max_epochs=recipe.epochs,
            callbacks=callbacks,
            check_val_every_n_epoch=recipe.check_every,
            num_sanity_val_steps=0,
            logger=TensorBoardLogger(where, "", "tensorboard") if folder and log == "tensorboard" else False,
            enable_checkpointing=bool(folder) or best,
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
            **hardware.for_trainer(),
        )
        alone = trainer.world_size == 1 and trainer.strategy.root_device.type == "cuda"
        kind = CudaGraphClassifierModule if alone and trainer.precision != "16-mixed" else ClassifierModule
        task = kind(module, train, validation, recipe)
        begin_at = unfinished(where, begun) if folder and resume else None
        module.train()  # a network that was loaded is in evaluation mode
        try:
            with hardware.matrix_products(trainer.strategy.root_device):
                trainer.fit(task, *task.numbers(), ckpt_path=begin_at, weights_only=True)
        except SystemExit:
            if trainer.interrupted:  # Lightning would end the process, and with it a notebook
                raise KeyboardInterrupt from None
            raise
        if best:
            if not (where / BEST).exists():
                raise Diverged("the validation loss was never a number: train at a lower rate")
            task.load_state_dict(torch.load(where / BEST, map_location="cpu", weights_only=True)["state_dict"])
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    return module.to(trainer.strategy.root_device).eval()


def _check(name: str, data: LabelledImages) -> None:
    if len(data.images) != len(data.labels):
        raise ValueError(f"one label an image, got {len(data.images)} {name} images and {len(data.labels)} labels")
    if not len(data.images):
        raise ValueError(f"there are no {name} images")
    if not data.images.is_floating_point():
        raise TypeError(f"{name} images are floating point in [0, 1], got {data.images.dtype}: use .float() / 255")
    if data.labels.dtype != torch.int64 or data.labels.min() < 0:
        came = f"{data.labels.dtype} from {data.labels.min().item()}"
        raise ValueError(f"{name} labels are whole numbers from 0 on, torch.int64, got {came}")
    if not all(torch.isfinite(images).all() for images in data.images.split(1024)):
        raise ValueError(f"the {name} images hold NaN or infinity")
