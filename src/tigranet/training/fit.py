"""The one ``fit`` for every network."""

import logging
import warnings

import lightning as L
import torch
from rich.console import Console
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

from tigranet.data.labelled import Labelled
from tigranet.training.progress import FitProgress
from tigranet.training.recipe import Recipe
from tigranet.training.task import Classification


class _InMemory(Dataset[Labelled]):
    """A whole batch at a time, by its list of indices."""

    def __init__(self, data: Labelled) -> None:
        self.data = data

    def __getitem__(self, indices: list[int]) -> Labelled:
        return self.data.take(indices)

    def __len__(self) -> int:
        return len(self.data.labels)


def fit(
    module: nn.Module,
    train: Labelled,
    validation: Labelled | None,
    recipe: Recipe,
    console: Console | None = None,
) -> nn.Module:
    """Train ``module`` in place by ``recipe``, on the best device there is; leave it there, in evaluation mode.

    Progress is drawn on ``console``, if one is given. The same recipe on the same machine gives the same weights,
    and the caller's random numbers are left as they were.
    """
    _check("training", train)
    if validation is not None:
        _check("validation", validation)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # no tips and no list of devices
    trainer = L.Trainer(
        max_epochs=recipe.epochs,
        devices=1,
        callbacks=[FitProgress(console)] if console else [],
        check_val_every_n_epoch=max(1, recipe.epochs // 20),
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    shuffled = RandomSampler(train.labels, generator=torch.Generator().manual_seed(recipe.seed))
    batches = _loader(train, shuffled, recipe.batch_size)
    held_out = _loader(validation, SequentialSampler(validation.labels), 256) if validation else None
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.filterwarnings("ignore", ".*does not have many workers.*")  # the data are in memory
        warnings.filterwarnings("ignore", ".*have no `val_dataloader`.*")  # as was asked for
        warnings.filterwarnings("ignore", ".*LeafSpec.*")  # Lightning's own, with the newest PyTorch
        torch.manual_seed(recipe.seed)
        trainer.fit(Classification(module, recipe), batches, held_out)
    return module.to(trainer.strategy.root_device).eval()


def _check(name: str, data: Labelled) -> None:
    if len(data.images) != len(data.labels):
        raise ValueError(f"one label an image, got {len(data.images)} {name} images and {len(data.labels)} labels")
    if not len(data.images):
        raise ValueError(f"there are no {name} images")
    if not torch.isfinite(data.images).all():
        raise ValueError(f"the {name} images hold NaN or infinity")


def _loader(data: Labelled, order: RandomSampler | SequentialSampler, batch_size: int) -> DataLoader[Labelled]:
    return DataLoader(_InMemory(data), sampler=BatchSampler(order, batch_size, drop_last=False), batch_size=None)
