"""ClassifierModule as Lightning sees it: a loss, an optimiser, a rate; any nn.Module inside."""

import math
from typing import Any

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchmetrics import MeanMetric

from tigranet.data.augment.deform import deform
from tigranet.data.augment.photometric import tone
from tigranet.data.augment.rigid import jitter, rotate
from tigranet.data.dataset import LabelledImages
from tigranet.training.recipe import Recipe

VALIDATION_BATCH = 256
HOPELESS = 1e6
"""A loss from which no training comes back: that of guessing is the logarithm of the number of classes."""


class Diverged(ValueError):
    """A training whose loss is no number any more, or beyond hope."""


class ClassifierModule(L.LightningModule):
    """Trains ``module``, from images (batch, maps, height, width) to logits, by ``recipe``.

    The images are in memory, on the device if they fit there. What Lightning hands on is the number of a batch; which
    images it is made of, and whatever else is random, follows from the seed and the epoch, so that an epoch that is
    begun again goes as it did. Each of several processes works on its part of every batch.
    """

    def __init__(
        self, module: nn.Module, train: LabelledImages, validation: LabelledImages | None, recipe: Recipe
    ) -> None:
        super().__init__()
        self.module, self.recipe = module, recipe
        self.images, self.held_out = train, validation
        self.batches: tuple[Tensor, ...] = ()
        self.total = torch.zeros(())
        self.validation_loss = MeanMetric(nan_strategy=math.inf)  # which is never the lowest
        self.validation_accuracy = MeanMetric()

    def numbers(self) -> tuple[range, range | None]:
        """Those of the batches to train with and, if there are any, to validate with."""
        validation = self.held_out and range(-(-len(self.held_out.labels) // VALIDATION_BATCH))
        return range(-(-len(self.images.labels) // self.recipe.batch_size)), validation

    def on_fit_start(self) -> None:
        if _fits(self.images, self.device):
            self.images = self.images.to(self.device)

    def on_train_epoch_start(self) -> None:
        (seed,) = np.random.SeedSequence([self.recipe.seed, self.current_epoch]).generate_state(1, np.uint64)
        torch.manual_seed(int(seed))
        order = torch.randperm(len(self.images.labels))
        self.batches = order.to(self.images.labels.device).split(self.recipe.batch_size)
        self.total = torch.zeros((), device=self.device)

    def training_step(self, number: int) -> Tensor:
        loss = self.loss_of(self.batches[number])
        self.count_in(loss, number)
        return loss

    def loss_of(self, chosen: Tensor) -> Tensor:
        """Of the images with these indices, as they are shown today."""
        images, labels, weights = self.images.take(chosen).to(self.device)
        if self.recipe.turned:
            images = rotate(images, 360 * torch.rand(len(images), device=self.device))
        if self.recipe.deformed:
            images = self._deformed(images)
        elif self.recipe.jitter:
            images = jitter(images, self.recipe.jitter)
        if self.recipe.tone:
            images = tone(images, self.recipe.tone)
        weights = torch.ones_like(images[:, 0, 0, 0]) if weights is None else weights
        logits, smoothing = self.module(self._part(images)), self.recipe.smoothing
        losses = F.cross_entropy(logits, self._part(labels), reduction="none", label_smoothing=smoothing)
        # the gradients of the processes are averaged, and their sum is wanted
        share = self._part(weights) * (self.trainer.world_size / weights.sum().clamp(min=1e-30))
        return (share * losses).sum()

    def _deformed(self, images: Tensor) -> Tensor:
        recipe = self.recipe
        shown = deform(images, recipe.jitter, recipe.zoom, recipe.stretch, recipe.warp)
        if not recipe.as_is:
            return shown
        return torch.where(torch.rand(len(images), 1, 1, 1, device=self.device) < recipe.as_is, images, shown)

    def count_in(self, loss: Tensor, number: int) -> None:
        """The loss of the epoch is the mean over its images, told with the last batch: to tell each costs a step."""
        self.total = self.total + loss.detach() * len(self.batches[number])
        if number == len(self.batches) - 1:
            mean = self.total / len(self.images.labels)
            self.log("loss", mean, on_step=False, on_epoch=True, sync_dist=True, batch_size=1)

    def on_train_epoch_end(self) -> None:
        loss = float(self.trainer.callback_metrics["loss"])
        if not loss < HOPELESS:
            raise Diverged(f"the loss became {loss:.3g} in epoch {self.current_epoch + 1}: train at a lower rate")

    def validation_step(self, number: int) -> None:
        assert self.held_out is not None
        rows = slice(number * VALIDATION_BATCH, (number + 1) * VALIDATION_BATCH)
        images, labels = (self._part(tensor[rows]).to(self.device) for tensor in self.held_out[:2])
        logits = self.module(images)
        self.validation_loss.update(F.cross_entropy(logits.float(), labels, reduction="none"))
        self.validation_accuracy.update((logits.argmax(1) == labels).float())

    def on_validation_epoch_end(self) -> None:
        for name in ("validation_loss", "validation_accuracy"):
            metric = getattr(self, name)
            self.log(name, metric.compute())
            metric.reset()

    def configure_optimizers(self) -> Any:
        fused = True if self.device.type == "cuda" else None
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.recipe.learning_rate, fused=fused)
        steps = int(self.trainer.estimated_stepping_batches)
        rate: torch.optim.lr_scheduler.LRScheduler = (
            torch.optim.lr_scheduler.OneCycleLR(optimizer, self.recipe.learning_rate, total_steps=steps)
            if self.recipe.schedule == "one-cycle"
            else torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rate, "interval": "step"}}

    def _part(self, batch: Tensor) -> Tensor:
        """What this process works on."""
        return batch.tensor_split(self.trainer.world_size)[self.global_rank]


def _fits(data: LabelledImages, device: torch.device) -> bool:
    """Whether the images take less than a quarter of the device's free memory."""
    return device.type != "cuda" or data.images.nbytes < torch.cuda.mem_get_info(device)[0] / 4
