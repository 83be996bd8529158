"""An exponential moving average of the weights, which is validated and kept instead of the weights themselves."""

from typing import TYPE_CHECKING, Any

import lightning as L
from torch.optim.swa_utils import get_ema_multi_avg_fn

from tigranet.training.checkpoint_file import AVERAGED_STATE
from tigranet.training.lightning_module import names_of_infinite_tensors

if TYPE_CHECKING:
    from torch import Tensor

WARM_UP = 10
"""As long as the average is younger than its memory, it covers about 1 / ``WARM_UP`` of the steps so far."""


def decay_at(step: int, decay: float) -> float:
    r"""Return the weight of the previous average in a step.

    .. math:: d_t = \min\left(d, \frac{t - 1}{t - 1 + 10}\right)

    An average with the constant decay d remembers the initial weights for :math:`1 / (1 - d)` steps, which may be
    longer than the training. With the second term, the average starts with the weights of the first step, and then
    covers about the last tenth of all steps until the first term is smaller.

    Args:
        step: Number t of steps so far, from 1.
        decay: The decay d.

    Returns:
        The weight.

    Example:
        >>> [round(decay_at(step, 0.999), 3) for step in (1, 2, 11, 100_000)]
        [0.0, 0.091, 0.5, 0.999]
    """
    return min(decay, (step - 1) / (step - 1 + WARM_UP))


class WeightAveraging(L.Callback):
    """Average the weights and the running moments of a network over the steps of its training.

    The averages stand in for the weights during validation, with moments that belong to them (see
    :mod:`tigranet.training.settled_moments`). Checkpoints hold both. Integers, such as a number of
    batches, and tensors that hold infinity on purpose are not averaged. All processes compute the same averages,
    because they have the same weights.

    Lightning has a callback for this too, but it copies the whole module with all training images.

    Args:
        decay: Weight of the previous average in each step, see :func:`decay_at`.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.averages: dict[str, Tensor] = {}
        """The averages, by their names in the state of the module."""
        self.current: list[Tensor] = []
        """The tensors of the module that are averaged. They share the memory of the module."""
        self.last_step = 0
        """The step after which the averages were updated."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Start with the weights of the module, or with the averages of a checkpoint.

        Args:
            trainer: The trainer that runs.
            pl_module: The module that is trained.
        """
        self.last_step = trainer.global_step
        infinite = names_of_infinite_tensors(pl_module)
        current = {
            name: tensor
            for name, tensor in pl_module.state_dict().items()
            if tensor.is_floating_point() and name not in infinite
        }
        self.averages = {
            name: self.averages.get(name, tensor).to(tensor.device, copy=True) for name, tensor in current.items()
        }
        self.current = list(current.values())

    def on_train_batch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Add the weights after a step to the averages.

        Args:
            trainer: The trainer that runs.
        """
        if trainer.global_step == self.last_step:  # a part of a batch
            return
        self.last_step = trainer.global_step
        update = get_ema_multi_avg_fn(decay_at(trainer.global_step, self.decay))
        update(list(self.averages.values()), self.current, 0)

    def on_validation_epoch_start(self, *_: Any) -> None:
        """Put the averages into the module."""
        self._swap()

    def on_validation_epoch_end(self, *_: Any) -> None:
        """Put the weights back into the module."""
        self._swap()

    def _swap(self) -> None:
        for average, current in zip(self.averages.values(), self.current, strict=True):
            previous = current.clone()
            current.copy_(average)
            average.copy_(previous)

    def on_save_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add the averages to a checkpoint, beside the weights.

        Args:
            trainer: Ignored.
            pl_module: Ignored.
            checkpoint: The checkpoint.
        """
        checkpoint[AVERAGED_STATE] = dict(checkpoint["state_dict"]) | self.averages

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        """Restore the averages of a checkpoint.

        Args:
            trainer: Ignored.
            pl_module: Ignored.
            checkpoint: The checkpoint.
        """
        self.averages = dict(checkpoint[AVERAGED_STATE])

    def copy_to(self, module: L.LightningModule) -> None:
        """Replace the weights of a module by the averages, at the end of a training.

        Args:
            module: The module that was trained.
        """
        module.load_state_dict(module.state_dict() | self.averages)
