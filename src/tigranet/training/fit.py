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
        return Labelled(self.data.images[indices], self.data.labels[indices])

    def __len__(self) -> int:
        return len(self.data.labels)


def fit(
    module: nn.Module, train: Labelled, validation: Labelled, recipe: Recipe, console: Console | None = None
) -> nn.Module:
    """Train ``module`` in place by ``recipe``, on the best device there is; leave it there, in evaluation mode.

    Progress is drawn on ``console``, if one is given. The same recipe on the same machine gives the same weights.
    """
    for name, (images, labels) in (("training", train), ("validation", validation)):
        if len(images) != len(labels):
            raise ValueError(f"one label an image, got {len(images)} {name} images and {len(labels)} labels")
        if not len(images):
            raise ValueError(f"there are no {name} images")
        if not torch.isfinite(images).all():
            raise ValueError(f"the {name} images hold NaN or infinity")
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # no tips and no list of devices
    torch.manual_seed(recipe.seed)
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not have many workers.*")  # the data are in memory
        warnings.filterwarnings("ignore", ".*LeafSpec.*")  # Lightning's own, with the newest PyTorch
        trainer.fit(
            Classification(module, recipe),
            _loader(train, shuffled, recipe.batch_size),
            _loader(validation, SequentialSampler(validation.labels), 256),
        )
    return module.to(trainer.strategy.root_device).eval()


def _loader(data: Labelled, order: RandomSampler | SequentialSampler, batch_size: int) -> DataLoader[Labelled]:
    return DataLoader(_InMemory(data), sampler=BatchSampler(order, batch_size, drop_last=False), batch_size=None)
