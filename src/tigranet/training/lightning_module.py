"""The Lightning module that trains a classifier: batches, augmentation, loss, optimiser and validation."""

import math
import warnings
from typing import Any

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torchmetrics import MeanMetric

from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import LabelledImages
from tigranet.data.shards.stored_images import StoredImages
from tigranet.training.augmentation import augment
from tigranet.training.batch_indices import BatchIndices, random_state, set_random_state
from tigranet.training.batch_reader import read_ahead, read_batch
from tigranet.training.finite_images import ValidationImagesWarning, list_positions
from tigranet.training.optimiser import create_optimiser
from tigranet.training.process_state import seed_generators
from tigranet.training.recipe import Recipe

VALIDATION_BATCH_SIZE = 256
"""Batch size of small validation images."""
EPOCH_STATE = "epoch_state"
"""The name of what is stored in a checkpoint in the middle of an epoch."""
DIVERGENCE_LOSS = 1e6
"""Mean loss of an epoch from which a training counts as diverged. The loss of random guessing is the logarithm of the
number of classes. A validation image with such a loss has no usable answer."""


class Diverged(ValueError):
    """Raised when the loss of a training becomes very large, infinite or NaN, or its weights infinite or NaN."""


class ClassifierModule(L.LightningModule):
    """Train a classifier from images to logits according to a recipe.

    All images are in memory, and on the device if they fit there, or they are in shards. Lightning passes only the
    index of a batch; the images of the batch and the augmentation depend on the seed and the epoch alone, so that an
    epoch that is repeated after an interruption gives the same result. A checkpoint in the middle of an epoch has the
    states of the random generators. With several processes, each works on its share of every batch.

    With ``accumulate`` in the recipe, each batch is computed in that number of parts, one after the other, and the
    gradients of the parts are added. Lightning then passes the index of a part.

    Args:
        module: The network.
        train: The training images.
        validation: The validation images, if any.
        recipe: The recipe.

    Shape:
        The network takes images (batch, maps, height, width) and returns logits (batch, classes).
    """

    def __init__(
        self, module: nn.Module, train: LabelledImages, validation: LabelledImages | None, recipe: Recipe
    ) -> None:
        super().__init__()
        self.module, self.recipe = module, recipe
        self.training_data, self.validation_data = train, validation
        self.batches: tuple[Tensor, ...] = ()
        """The indices of the images of each batch of the current epoch."""
        self.indices = BatchIndices(-(-len(train.labels) // recipe.batch_size) * recipe.accumulate)
        """What Lightning iterates over."""
        self.batch: LabelledImages | None = None
        """The augmented batch, while its parts are computed."""
        self.resumed: dict[str, Any] | None = None
        """What a checkpoint in the middle of an epoch has about that epoch, until the training continues."""
        self.epoch_loss = torch.zeros(())
        """The sum of the losses of the images of the current epoch so far."""
        self.validation_loss, self.validation_accuracy, self.usable_fraction = (MeanMetric() for _ in range(3))
        self.unusable_answers: list[int] = []
        """The positions of the validation images without a usable answer, in the last validation."""
        self.has_warned = False
        """Whether the user knows of them."""
        self.infinite_before: set[str] = set()
        """The tensors of the network that are infinite on purpose, such as a mask."""

    def batch_indices(self) -> tuple[BatchIndices, range | None]:
        """Return what Lightning iterates over: the indices of the training and of the validation batches.

        Returns:
            The indices of the training batches, or of their parts, and of the validation batches or None if there are
            none.
        """
        if self.validation_data is None:
            return self.indices, None
        return self.indices, range(-(-len(self.validation_data.labels) // _validation_batch_size(self.validation_data)))

    def on_fit_start(self) -> None:
        """Move the training images to the device if they fit into its memory."""
        self.infinite_before = names_of_infinite_tensors(self.module)
        if _fits(self.training_data, self.device):
            self.training_data = self.training_data.to(self.device)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is needed to continue in the middle of an epoch.

        Args:
            checkpoint: The checkpoint.
        """
        if self.indices.is_inside:
            random = random_state(self.device)
            checkpoint[EPOCH_STATE] = {"indices": self.indices.state_dict(), "random": random, "loss": self.epoch_loss}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Remember what a checkpoint has about the epoch that it was written in.

        Args:
            checkpoint: The checkpoint.
        """
        self.resumed = checkpoint.get(EPOCH_STATE)

    def on_train_start(self) -> None:
        """Continue in the middle of an epoch, if the checkpoint was written there."""
        if self.resumed is not None:
            self._shuffle()
            # Lightning restores this too, but not if the length of the epoch was needed earlier.
            self.indices.load_state_dict(self.resumed["indices"])
            self.epoch_loss = self.resumed["loss"].to(self.device)
            set_random_state(self.resumed["random"], self.device)
            self.resumed = None

    def on_train_epoch_start(self) -> None:
        """Seed the random generators for this epoch and shuffle the images into batches."""
        self._shuffle()
        self.epoch_loss = torch.zeros((), device=self.device)

    def _shuffle(self) -> None:
        (seed,) = np.random.SeedSequence([self.recipe.seed, self.current_epoch]).generate_state(1, np.uint64)
        seed_generators(int(seed), self.device)
        order = torch.randperm(len(self.training_data.labels))
        self.batches = order.to(self.training_data.labels.device).split(self.recipe.batch_size)

    def training_step(self, index: int) -> Float[Tensor, ""]:
        """Return the loss of one batch, or of one part of it.

        Args:
            index: The index of the batch, or of the part, in this epoch.

        Returns:
            The loss.
        """
        batch, part = divmod(index, self.recipe.accumulate)
        if part == 0 or self.batch is None:
            self.batch = self.read_batch(self.batches[batch])
            if batch + 1 < len(self.batches):
                read_ahead(self.training_data, self.batches[batch + 1], self._own_rows(self.batches[batch + 1]))
        loss = self.part_loss(self.batch, part)
        if part == self.recipe.accumulate - 1:
            self.batch = None
        self.record_loss(loss, index)
        return loss

    def read_batch(self, indices: Int[Tensor, " batch"]) -> LabelledImages:
        """Read and augment some of the training images.

        Every process draws the random numbers of the whole batch, and reads what it needs of it.

        Args:
            indices: The indices of the images.

        Returns:
            The batch, on the device.
        """
        batch = read_batch(self.training_data, indices, self._own_rows(indices)).to(self.device)
        return batch._replace(images=augment(batch.images, self.recipe))

    def batch_loss(self, indices: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Augment some of the training images and return their loss.

        Args:
            indices: The indices of the images.

        Returns:
            The loss, see :meth:`part_loss`.
        """
        return self.part_loss(self.read_batch(indices))

    def part_loss(self, batch: LabelledImages, part: int = 0) -> Float[Tensor, ""]:
        """Return the loss of one part of a batch.

        Args:
            batch: The whole batch, augmented.
            part: Number of the part, from 0 on.

        Returns:
            The weighted mean of the cross-entropy. With several processes, this is the share of this process times the
            number of processes, because Lightning averages the gradients of all processes; with several parts, it is
            the share of the part times the number of parts, because Lightning averages them too.
        """
        images, labels, weights = batch
        weights = torch.ones_like(images[:, 0, 0, 0]) if weights is None else weights
        if part >= len(images):  # The last batch has fewer images than parts.
            return 0.0 * torch.stack([parameter.sum() for parameter in self.module.parameters()]).sum()
        logits = self.module(self._share(images, part))
        losses = F.cross_entropy(
            logits, self._share(labels, part), reduction="none", label_smoothing=self.recipe.smoothing
        )
        count = self.trainer.world_size * self.recipe.accumulate
        coefficients = self._share(weights, part) * (count / weights.sum().clamp(min=1e-30))
        return (coefficients * losses).sum()

    def record_loss(self, loss: Float[Tensor, ""], index: int) -> None:
        """Add the loss of a batch to the epoch, and log the mean over all images after the last batch.

        Only the last batch logs, because logging every batch would wait for the device.

        Args:
            loss: The mean loss of the batch.
            index: The index of the batch, or of the part, in this epoch.
        """
        images = len(self.batches[index // self.recipe.accumulate])
        self.epoch_loss = self.epoch_loss + loss.detach() * images / self.recipe.accumulate
        if index == len(self.indices) - 1:
            mean = self.epoch_loss / len(self.training_data.labels)
            self.log("loss", mean, on_step=False, on_epoch=True, sync_dist=True, batch_size=1)

    def on_train_epoch_end(self) -> None:
        """Check that the training has not diverged. This comes before checkpoints are written.

        Raises:
            Diverged: If the mean loss of the epoch is too large or not a number, or if a weight is not finite.
        """
        loss = float(self.trainer.callback_metrics["loss"])
        remedy = f"Use a lower learning rate than {self.recipe.learning_rate:g}"
        if not loss < DIVERGENCE_LOSS:
            raise Diverged(
                f"the training diverged: the loss was {loss:.3g} in epoch {self.current_epoch + 1}. {remedy}"
            )
        # The last step of an epoch changes the weights after its loss was computed.
        if names_of_infinite_tensors(self.module) - self.infinite_before:
            raise Diverged(
                f"the training diverged: weights became infinite or NaN in epoch {self.current_epoch + 1}. {remedy}"
            )
        self._warn_of_unusable_answers()

    def _warn_of_unusable_answers(self) -> None:
        """Name the validation images without a usable answer, once per training."""
        if self.unusable_answers and not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"the network gives no finite loss for {len(self.unusable_answers)} validation images in epoch "
                f"{self.current_epoch + 1}, at position {list_positions(self.unusable_answers)}: they count as wrong",
                ValidationImagesWarning,
                stacklevel=2,
            )

    def on_validation_epoch_start(self) -> None:
        """Forget the images of the previous validation."""
        self.unusable_answers = []

    def validation_step(self, index: int) -> None:
        """Add the loss and the accuracy of one validation batch to the metrics.

        An image whose loss is not finite, or absurdly large, counts as wrong, with the loss of equal probabilities for
        all classes. One such image would otherwise decide which weights are the best ones.

        Args:
            index: The index of the batch.
        """
        assert self.validation_data is not None
        size = _validation_batch_size(self.validation_data)
        positions = torch.arange(len(self.validation_data.labels))[index * size : (index + 1) * size]
        positions = positions.tensor_split(self.trainer.world_size)[self.global_rank]
        rows = slice(int(positions[0]), int(positions[-1]) + 1) if len(positions) else slice(0, 0)
        images, labels = (tensor[rows].to(self.device) for tensor in self.validation_data[:2])
        logits = self.module(images).float()
        losses = F.cross_entropy(logits, labels, reduction="none")
        is_usable = losses < DIVERGENCE_LOSS  # false for NaN
        self.validation_loss.update(torch.where(is_usable, losses, math.log(logits.shape[1])))
        self.validation_accuracy.update(((logits.argmax(1) == labels) & is_usable).float())
        self.usable_fraction.update(is_usable.float())
        if not is_usable.all():
            self.unusable_answers += positions[~is_usable.cpu()].tolist()

    def on_validation_epoch_end(self) -> None:
        """Log the validation metrics of the epoch, with an infinite loss if no image has a usable answer."""
        metrics = {}
        for name in ("validation_loss", "validation_accuracy", "usable_fraction"):
            metric = getattr(self, name)
            metrics[name] = metric.compute()
            metric.reset()
        has_answers = metrics["usable_fraction"] > 0
        self.log("validation_loss", torch.where(has_answers, metrics["validation_loss"], math.inf))
        self.log("validation_accuracy", metrics["validation_accuracy"])

    def configure_optimizers(self) -> Any:
        """Return the optimiser and the learning-rate schedule, which advances with every step."""
        optimizer = create_optimiser(self.module, self.recipe, fused=True if self.device.type == "cuda" else None)
        steps = int(self.trainer.estimated_stepping_batches)
        scheduler: torch.optim.lr_scheduler.LRScheduler = (
            torch.optim.lr_scheduler.OneCycleLR(optimizer, self.recipe.learning_rate, total_steps=steps)
            if self.recipe.schedule == "one-cycle"
            else torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def _share(self, batch: Tensor, part: int) -> Tensor:
        """Return the rows of a part of a batch that this process works on."""
        rows = batch.tensor_split(self.recipe.accumulate)[part]
        return rows.tensor_split(self.trainer.world_size)[self.global_rank]

    def _own_rows(self, batch: Tensor) -> Tensor | None:
        """Return the numbers of the rows of a batch that this process works on, or None for all of them."""
        if self.trainer.world_size == 1:
            return None
        rows = torch.arange(len(batch))
        return torch.cat([self._share(rows, part) for part in range(self.recipe.accumulate)])


def names_of_infinite_tensors(module: nn.Module) -> set[str]:
    """Find the parameters and buffers of a network that are not finite.

    Args:
        module: The network, on one device.

    Returns:
        The names of those that hold NaN or infinity.
    """
    tensors = {
        name: tensor
        for name, tensor in (*module.named_parameters(), *module.named_buffers())
        if tensor.is_floating_point()
    }
    if not tensors:
        return set()
    is_finite = torch.stack([tensor.isfinite().all() for tensor in tensors.values()]).tolist()
    return {name for name, finite in zip(tensors, is_finite, strict=True) if not finite}


def _validation_batch_size(data: LabelledImages) -> int:
    return limit_batch_size(VALIDATION_BATCH_SIZE, *data.images.shape[2:])


def _fits(data: LabelledImages, device: torch.device) -> bool:
    """Whether the images take less than a quarter of the free memory of a GPU. Those in shards stay there."""
    if isinstance(data.images, StoredImages):
        return False
    return device.type != "cuda" or data.images.nbytes < torch.cuda.mem_get_info(device)[0] / 4
