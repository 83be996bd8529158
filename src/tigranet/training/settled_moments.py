r"""Validate with the moments that belong to the current weights.

A normalisation uses the mean and the variance of the batch during training, and running estimates of them in
evaluation. The estimates average over the last ten batches or so, in which the weights change. In a training of a few
hundred steps, and in its first half, they lag so far behind the weights that the validation accuracy jumps by tens of
points, although the network improves steadily. Moments that are computed again from some training images, with the
weights as they are, do not lag:

.. math:: \mathrm{E}\,y \approx \frac{1}{B} \sum_{b=1}^B \mathrm{E}_b\,y

over B batches that are not augmented. Training itself never reads the estimates, so it gives the same weights with and
without this.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tigranet.data.dataset import LabelledImages
from tigranet.training.recipe import Recipe

MOMENT_BATCHES = 4
"""Number of training batches from which moments are computed."""


def normalisations(module: nn.Module) -> list[nn.Module]:
    """Find the parts of a network that keep running estimates of moments.

    Args:
        module: The network.

    Returns:
        Its batch normalisations, and its layers with the attributes ``mean``, ``variance``, ``batches`` and
        ``momentum``, such as :class:`tigranet.layers.Standardise`.
    """
    names = ("mean", "variance", "batches", "momentum")
    return [
        part
        for part in module.modules()
        if (isinstance(part, _BatchNorm) and part.track_running_stats) or all(hasattr(part, name) for name in names)
    ]


def recompute_moments(module: nn.Module, batches: Iterable[Tensor]) -> None:
    """Replace all running estimates by the averages over some batches, with the weights as they are.

    Random generators are not used: dropout is off.

    Args:
        module: The network. The mode of all its parts is restored.
        batches: Batches of at least two images.
    """
    parts = normalisations(module)
    if not parts:
        return
    modes = {part: part.training for part in module.modules()}
    with torch.no_grad(), _plain_averages(parts):
        module.eval()
        for part in parts:
            part.training = True
        for batch in batches:
            module(batch)
    for part, training in modes.items():
        part.training = training


@contextmanager
def _plain_averages(parts: list[nn.Module]) -> Iterator[None]:
    """Start the running estimates again, as plain averages of all batches within the block."""
    settings: list[Any] = [part.momentum for part in parts]
    for part in parts:
        if isinstance(part, _BatchNorm):
            part.reset_running_stats()
            part.momentum = None
        else:
            assert isinstance(part.batches, Tensor)
            part.batches.zero_()
            part.momentum = 0.0  # type: ignore[assignment]  # the smallest weight of a batch
    try:
        yield
    finally:
        for part, momentum in zip(parts, settings, strict=True):
            part.momentum = momentum


def moment_batches(train: LabelledImages, recipe: Recipe, device: torch.device) -> list[Tensor]:
    """Draw the training batches from which moments are computed, the same ones every time.

    Args:
        train: The training images.
        recipe: The recipe, whose batch size and seed are used.
        device: Device of the result.

    Returns:
        Up to :data:`MOMENT_BATCHES` batches of images, which are not augmented; none if there is only one image.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    order = torch.randperm(len(train.labels), generator=generator)[: MOMENT_BATCHES * recipe.batch_size]
    batches = [rows.to(train.images.device) for rows in order.split(recipe.batch_size) if len(rows) > 1]
    return [train.images[rows].to(device) for rows in batches]


class SettledMoments(L.Callback):
    """Compute the moments again before each validation, and restore the running estimates after it.

    In the list of callbacks it stands before the average of the weights: the moments are those of the averaged weights,
    and are removed before these are.

    Args:
        module: The network.
        train: The training images.
        recipe: The recipe.
    """

    def __init__(self, module: nn.Module, train: LabelledImages, recipe: Recipe) -> None:
        self.module, self.train, self.recipe = module, train, recipe
        self.estimates: list[tuple[Tensor, Tensor]] = []
        """The running estimates and copies of them, during a validation."""

    def on_validation_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """Compute the moments before the first batch.

        Args:
            trainer: Ignored.
            pl_module: The module that is trained.
            batch: Ignored.
            batch_idx: Position of the batch.
        """
        if batch_idx == 0 and trainer.state.fn == "fit":
            buffers = [buffer for part in normalisations(self.module) for buffer in part.buffers(recurse=False)]
            self.estimates = [(buffer, buffer.clone()) for buffer in buffers]
            recompute_moments(self.module, moment_batches(self.train, self.recipe, pl_module.device))

    def on_validation_epoch_end(self, *_: Any) -> None:
        """Restore the running estimates."""
        for buffer, copy in self.estimates:
            buffer.copy_(copy)
        self.estimates = []
