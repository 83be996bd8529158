"""Classification as Lightning sees it: a loss, an optimiser, a rate; any nn.Module inside."""

from typing import Any

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tigranet.data.labelled import Labelled
from tigranet.data.transforms import jitter
from tigranet.training.recipe import Recipe


class Classification(L.LightningModule):
    """Trains ``module``, from images (batch, maps, height, width) to logits, by ``recipe``."""

    def __init__(self, module: nn.Module, recipe: Recipe) -> None:
        super().__init__()
        self.module, self.recipe = module, recipe

    def training_step(self, batch: Labelled, _: int) -> Tensor:
        images, labels, weights = batch
        if self.recipe.jitter:
            images = jitter(images, self.recipe.jitter)
        losses = F.cross_entropy(self.module(images), labels, reduction="none")
        loss = losses.mean() if weights is None else (weights * losses).sum() / weights.sum().clamp(min=1e-30)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Labelled, _: int) -> None:
        correct = (self.module(batch.images).argmax(1) == batch.labels).float().mean()
        self.log("validation_accuracy", correct, prog_bar=True, batch_size=len(batch.labels))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.module.parameters(), lr=self.recipe.learning_rate)
        steps = int(self.trainer.estimated_stepping_batches)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.recipe.learning_rate, total_steps=steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rate, "interval": "step"}}
