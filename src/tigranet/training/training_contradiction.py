r"""Warn if a trained network classifies its training images worse than its training loss allows.

The probability of the true class of a misclassified image is at most 1/2, so its cross-entropy is at least
:math:`\ln 2`. With a mean training loss L and label smoothing s, at most the fraction

.. math:: e = \frac{L}{(1 - s) \ln 2}

of the training images is misclassified during training. If the finished network misclassifies many more of them, it
does not compute in evaluation what it computed in training, for example because its running estimates of
moments do not fit its weights.
"""

import math
import warnings

import torch
from torch import nn

from tigranet.data.batch_size import limit_batch_size
from tigranet.data.dataset import LabelledImages

TOLERANCE = 0.2
"""Difference of accuracies from which the warning appears. Augmented images are harder, so it is usually negative."""
MAX_IMAGES = 512
"""Largest number of training images that are classified."""
BATCH_SIZE = 64
"""Batch size of small images."""


class ContradictionWarning(UserWarning):
    """The training loss is low, but the network misclassifies its training images."""


def least_accuracy(loss: float, smoothing: float = 0.0) -> float:
    """Return the least accuracy on the training images that a mean loss allows.

    Args:
        loss: Mean cross-entropy.
        smoothing: Label smoothing.

    Returns:
        A fraction, which is 0 if the loss says nothing.

    Example:
        >>> round(least_accuracy(0.1), 2), least_accuracy(2.0)
        (0.86, 0.0)
    """
    return max(0.0, 1 - loss / ((1 - smoothing) * math.log(2)))


def warn_of_contradiction(module: nn.Module, train: LabelledImages, loss: float, smoothing: float = 0.0) -> None:
    """Warn if a network that was just trained misclassifies more training images than its loss allows.

    Args:
        module: The network. Its mode is restored.
        train: The training images, with equal weights.
        loss: Mean training loss of the last epoch.
        smoothing: Label smoothing of this loss.
    """
    expected = least_accuracy(loss, smoothing)
    if expected <= TOLERANCE:
        return
    step = -(-len(train.labels) // MAX_IMAGES)
    images, labels = train.images[::step], train.labels[::step]
    device = next((parameter.device for parameter in module.parameters()), images.device)
    was_training = module.training
    with torch.no_grad():
        module.eval()
        batches = images.split(limit_batch_size(BATCH_SIZE, *images.shape[2:]))
        classes = torch.cat([module(batch.to(device)).argmax(1) for batch in batches])
    module.train(was_training)
    accuracy = float((classes.cpu() == labels.cpu()).double().mean())
    if accuracy < expected - TOLERANCE:
        warnings.warn(
            f"the training loss of {loss:.2f} means that at least {100 * expected:.0f} % of the training images were "
            f"classified correctly during the training, but the trained network classifies {100 * accuracy:.0f} % of "
            "them correctly: train for more epochs, or use a lower learning rate or a larger batch size",
            ContradictionWarning,
            stacklevel=2,
        )
