"""``fit``: train any network on images according to a recipe."""

import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import TensorBoardLogger
from rich.console import Console
from torch import nn

from tigranet.choices import Log
from tigranet.data.dataset import LabelledImages
from tigranet.freed_memory import keep_freed_memory
from tigranet.training.checkpoint_file import AVERAGED_STATE, load_checkpoint
from tigranet.training.checkpoints import BEST_CHECKPOINT, Checkpoints, checkpoint_to_resume, training_fingerprint
from tigranet.training.cuda_graph import CudaGraphClassifierModule
from tigranet.training.dropout import dropout_during_training
from tigranet.training.finite_images import check_training_images, finite_validation_images
from tigranet.training.hardware import Hardware
from tigranet.training.lightning_module import ClassifierModule, Diverged
from tigranet.training.process_state import preserve_lightning_settings, preserve_random_state
from tigranet.training.progress import FitProgress
from tigranet.training.recipe import Recipe
from tigranet.training.settled_moments import SettledMoments, moment_batches, recompute_moments
from tigranet.training.synchronised_batch_norm import synchronised_batch_norms
from tigranet.training.training_contradiction import warn_of_contradiction
from tigranet.training.weight_averaging import WeightAveraging

CHECKPOINT_STEPS = 1_000
"""Number of steps between checkpoints within an epoch: seconds to minutes of work."""
EXPECTED_WARNINGS = (
    ".*have no `val_dataloader`.*",  # Training without validation images is allowed.
    ".*GPU available but not used.*",  # So is training on the CPU of a machine with a GPU,
    ".*srun.*",  # and training outside the queue of a cluster.
    ".*sync_dist=True.*",  # The metrics are already averaged over all processes.
    ".*LeafSpec.*",  # Lightning itself uses a deprecated name of PyTorch.
)


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
    checkpoint_steps: int = CHECKPOINT_STEPS,
    announce: bool = True,
) -> nn.Module:
    """Train a network in place.

    The same arguments on the same machine give the same weights. Random generators, log levels and the deterministic
    mode of the process are restored at the end. A process group of ``torch.distributed`` that exists before the call is
    used and stays; one that the training creates is destroyed at the end.

    Before each validation, the moments of normalisations are computed again from some training images, see
    :mod:`tigranet.training.settled_moments`.

    Validation images that hold NaN or infinity are left out, with a warning. One for which the network gives no finite
    loss counts as a wrong answer with equal probabilities for all classes, with a warning as well.

    Args:
        module: The network, from images (batch, maps, height, width) to logits (batch, classes).
        train: The training images.
        validation: The validation images, if any. They are required to keep the best weights and to stop early.
        recipe: How to train.
        console: Where to draw a progress bar. None draws nothing.
        hardware: What to train on. None uses one device, the fastest that is available.
        folder: Where to write checkpoints and the table of losses. None writes nothing.
        resume: Whether to continue from the last checkpoint in ``folder``, if there is one. The weights at the end are
            the same as without the interruption.
        log: ``tensorboard`` writes TensorBoard's event files to ``folder`` as well.
        checkpoint_steps: Number of steps between checkpoints within an epoch. There is one after the epoch too, at
            least after every twentieth of a training.
        announce: Whether to print the expected duration after the first steps. The progress bar is drawn anyway.

    Returns:
        ``module``, on the device it was trained on, in evaluation mode.

    Raises:
        ValueError: If images, labels or arguments do not fit together, if training images hold NaN or infinity, or if
            ``folder`` holds the checkpoint of a different training.
        TypeError: If images are not floating point.
        Diverged: If the loss becomes very large, infinite or NaN, or weights become infinite or NaN. ``folder`` still
            has the last checkpoint before that.
        KeyboardInterrupt: If the training is interrupted from the keyboard.
    """
    hardware = (hardware or Hardware()).for_network(module)
    if log not in get_args(Log):
        raise ValueError(f"expected log to be one of {', '.join(get_args(Log))}, got {log!r}")
    if checkpoint_steps < 1:
        raise ValueError(f"checkpoint_steps must be at least 1, got {checkpoint_steps}")
    if resume and folder is None:
        raise ValueError("resume=True needs the folder with the checkpoints: set folder")
    keep_best = recipe.keep == "best" or recipe.patience is not None
    _check_data("training", train)
    check_training_images(train)
    if validation is not None:
        _check_data("validation", validation)
        validation = finite_validation_images(validation)
    elif keep_best:
        raise ValueError(
            "keep='best' and patience need validation images: pass them, or use keep='last' without patience"
        )
    if recipe.balanced:
        train = train.balanced()
    group_existed = _has_process_group()
    averaging = WeightAveraging(recipe.average) if recipe.average else None
    with (
        _ignore_expected_warnings(),
        preserve_lightning_settings(),
        dropout_during_training(module, recipe.dropout),
        _folder_or_temporary(folder) as checkpoint_folder,
    ):
        fingerprint = training_fingerprint(module, train, validation, recipe) if folder else ""
        trainer = L.Trainer(
            max_epochs=recipe.epochs,
            callbacks=_callbacks(
                recipe,
                FitProgress(console, announce) if console else None,
                SettledMoments(module, train, recipe),
                averaging,
                Checkpoints(checkpoint_folder, fingerprint, checkpoint_steps if folder else None)
                if folder or keep_best
                else None,
            ),
            accumulate_grad_batches=recipe.accumulate,
            check_val_every_n_epoch=recipe.check_every,
            num_sanity_val_steps=0,
            logger=TensorBoardLogger(checkpoint_folder, "", "tensorboard")
            if folder and log == "tensorboard"
            else False,
            enable_checkpointing=bool(folder) or keep_best,
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
            **hardware.for_trainer(),
        )
        device = trainer.strategy.root_device
        lightning_module = _module_class(trainer, recipe)(module, train, validation, recipe)
        checkpoint = None
        if folder and resume:
            state = lightning_module.state_dict()
            checkpoint = checkpoint_to_resume(folder, fingerprint, state, keep_best, averaging is not None)
        module.train()  # A network that was loaded from a file is in evaluation mode.
        try:
            with (
                preserve_random_state(device),
                hardware.matrix_products(device),
                keep_freed_memory(device.type == "cpu"),
                synchronised_batch_norms(module, trainer.world_size > 1),
            ):
                trainer.fit(
                    lightning_module, *lightning_module.batch_indices(), ckpt_path=checkpoint, weights_only=True
                )
        except SystemExit:
            if trainer.interrupted:  # Lightning would end the process, for example a notebook.
                raise KeyboardInterrupt from None
            raise
        if keep_best:
            best_state = AVERAGED_STATE if averaging else "state_dict"
            _load_best_weights(lightning_module, checkpoint_folder / BEST_CHECKPOINT, best_state)
        elif averaging:
            averaging.copy_to(lightning_module)
        module.to(device)  # Lightning may have moved it to the CPU.
        if keep_best or averaging:  # These weights were validated with moments of their own.
            recompute_moments(module, moment_batches(train, recipe, device))
        elif train.weights is None:
            loss = float(trainer.callback_metrics.get("loss", math.inf))  # none if no epoch was left to train
            warn_of_contradiction(module, train, loss, recipe.smoothing)
    if _has_process_group() and not group_existed:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    return module.eval()


def _has_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


@contextmanager
def _ignore_expected_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        for pattern in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", pattern)
        yield


@contextmanager
def _folder_or_temporary(folder: Path | None) -> Iterator[Path]:
    """Create ``folder`` if necessary; None stands for a temporary folder that is deleted after the block."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


def _callbacks(
    recipe: Recipe,
    progress: FitProgress | None,
    moments: SettledMoments,
    averaging: WeightAveraging | None,
    checkpoints: Checkpoints | None,
) -> list[L.Callback]:
    callbacks: list[L.Callback] = [callback for callback in (moments, averaging, checkpoints) if callback]
    if recipe.patience:
        checks = -(-recipe.patience // recipe.check_every)
        # An infinite loss is never the lowest, so patience decides about it too.
        callbacks.append(EarlyStopping("validation_loss", patience=checks, check_finite=False))
    if progress:
        callbacks.append(progress)
    return callbacks


def _module_class(trainer: L.Trainer, recipe: Recipe) -> type[ClassifierModule]:
    """Return the module class: CUDA graphs need a single GPU and one gradient per step, and no rescaled losses."""
    single_gpu = trainer.world_size == 1 and trainer.strategy.root_device.type == "cuda"
    can_record = single_gpu and trainer.precision != "16-mixed" and recipe.accumulate == 1
    return CudaGraphClassifierModule if can_record else ClassifierModule


def _load_best_weights(lightning_module: ClassifierModule, path: Path, state: str) -> None:
    if not path.exists():
        raise Diverged("the training diverged: the validation loss was never finite. Use a lower learning rate")
    lightning_module.load_state_dict(load_checkpoint(path)[state])


def _check_data(name: str, data: LabelledImages) -> None:
    """Raise an error if images and labels do not fit together."""
    if len(data.images) != len(data.labels):
        raise ValueError(
            f"expected one label per image, got {len(data.images)} {name} images and {len(data.labels)} labels"
        )
    if not len(data.images):
        raise ValueError(f"expected at least one image, got no {name} images")
    if not data.images.is_floating_point():
        raise TypeError(f"expected floating-point {name} images in [0, 1], got {data.images.dtype}: use .float() / 255")
    if data.labels.dtype != torch.int64 or data.labels.min() < 0:
        actual = f"{data.labels.dtype} with minimum {data.labels.min().item()}"
        raise ValueError(f"expected {name} labels to be class indices from 0 in torch.int64, got {actual}")
