r"""Logistic regression on the invariant features of a network, as the last layer of that network.

A network without fully-connected layers computes the logits

.. math:: W\, \frac{\phi - \mathrm{E}\,\phi}{\sqrt{\mathrm{Var}\,\phi + \epsilon}} + b

from its features :math:`\phi`. This is exactly logistic regression on standardised features, so a fitted regression is
stored as W and b, and the model is used like any trained network.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tigranet.layers.standardise import Standardise
from tigranet.model import TIGraNet

EPS = 1e-10
"""The number that is added to variances. A network may add another one."""
MAX_ITERATIONS = 200
"""Largest number of iterations of the optimiser. A regression that has not converged by then is good enough."""
INVERSE_PENALTY = 1.0
"""Inverse strength of the penalty on the squared weights. Between 1 and 100, accuracy changes by about a point."""
MISSING_CLASS_BIAS = -50.0
"""Logit of a class without training images, which is never the answer."""


class LinearHead(NamedTuple):
    """Standardisation and logistic regression of features, in double precision."""

    mean: Float[Tensor, " statistics"]
    """Mean of each feature."""
    variance: Float[Tensor, " statistics"]
    """Variance of each feature."""
    weight: Float[Tensor, "classes statistics"]
    """Weights of the standardised features."""
    bias: Float[Tensor, " classes"]
    """Bias of each class."""

    @classmethod
    def fit(
        cls, features: Float[Tensor, "images statistics"], labels: Int[Tensor, " images"], num_classes: int
    ) -> "LinearHead":
        """Fit the standardisation and the regression to the features of training images.

        Args:
            features: Features.
            labels: Labels, of at least two classes.
            num_classes: Number of classes, of which some may have no image.

        Returns:
            The fitted layers.

        Raises:
            ValueError: If all images have the same label.
        """
        if len(labels.unique()) < 2:
            raise ValueError(f"expected training images of at least 2 classes, got {len(labels.unique())}")
        variance, mean = torch.var_mean(features.double(), dim=0, correction=0)
        standardised = (features.double() - mean) * (variance + EPS).rsqrt()
        weight, bias = _logistic_regression(standardised.numpy(), labels.numpy(), num_classes)
        return cls(mean, variance, torch.from_numpy(weight), torch.from_numpy(bias))

    def __call__(self, features: Float[Tensor, "images statistics"]) -> Float[Tensor, "images classes"]:
        """Compute the logits.

        Args:
            features: Features.

        Returns:
            One logit per class.
        """
        standardised = (features.double() - self.mean) * (self.variance + EPS).rsqrt()
        return standardised @ self.weight.T + self.bias

    def copy_to(self, network: TIGraNet) -> None:
        """Store the two layers in a network.

        Args:
            network: A network with one linear layer after the statistics.

        Raises:
            ValueError: If the network has other layers after the statistics.
        """
        standardise, head = network.standardise, network.classifier[-1]
        if not isinstance(standardise, Standardise) or len(network.classifier) > 1 or not isinstance(head, nn.Linear):
            raise ValueError(f"expected one linear layer after the statistics, got '{network.architecture}'")
        rescaling = ((self.variance + standardise.eps) / (self.variance + EPS)).sqrt()
        with torch.no_grad():
            standardise.mean.copy_(self.mean)
            standardise.variance.copy_(self.variance)
            standardise.batches.fill_(1)
            head.weight.copy_(self.weight * rescaling)
            head.bias.copy_(self.bias)


def cross_validate(
    features: Float[Tensor, "images statistics"], labels: Int[Tensor, " images"], folds: Int[Tensor, " images"]
) -> Bool[Tensor, " images"]:
    """Predict the label of each image by a regression that was fitted to the images of the other folds.

    Args:
        features: Features.
        labels: Labels.
        folds: Number of the fold of each image.

    Returns:
        Whether each prediction is correct.
    """
    logits = out_of_sample_logits(features, labels, folds, int(labels.max()) + 1)
    return logits.argmax(1) == labels


def out_of_sample_logits(
    features: Float[Tensor, "images statistics"],
    labels: Int[Tensor, " images"],
    folds: Int[Tensor, " images"],
    num_classes: int,
    is_used: Bool[Tensor, " images"] | None = None,
    step: Callable[[], None] = lambda: None,
) -> Float[Tensor, "images classes"]:
    """Compute the logits of each image by a regression that was fitted to images of the other folds.

    Args:
        features: Features.
        labels: Labels.
        folds: Number of the fold of each image.
        num_classes: Number of classes.
        is_used: Whether a regression may be fitted to each image; None for all. The images used must be of at least
            two classes in all folds but any one.
        step: Called after each regression.

    Returns:
        One logit per class.
    """
    logits = features.new_zeros(len(labels), num_classes, dtype=torch.float64)
    for fold in folds.unique():
        held_out = folds == fold
        fitted = ~held_out if is_used is None else ~held_out & is_used
        head = LinearHead.fit(features[fitted], labels[fitted], num_classes)
        logits[held_out] = head(features[held_out])
        step()
    return logits


def stratified_folds(labels: Int[Tensor, " images"], folds: int, seed: int) -> Int[Tensor, " images"]:
    """Assign images to folds at random, such that the numbers of images of a class differ by at most one.

    Args:
        labels: Labels.
        folds: Number of folds.
        seed: Seed.

    Returns:
        The number of the fold of each image.

    Example:
        >>> stratified_folds(torch.tensor([0, 0, 1, 1, 1, 1]), 2, seed=0).bincount().tolist()
        [3, 3]
    """
    generator = torch.Generator().manual_seed(seed)
    result = torch.empty_like(labels)
    for label in labels.unique():
        members = torch.nonzero(labels == label).flatten()
        order = torch.randperm(len(members), generator=generator)
        result[members[order]] = torch.arange(len(members)) % folds
    return result


def _logistic_regression(
    standardised: Float[np.ndarray, "images statistics"], labels: Int[np.ndarray, " images"], num_classes: int
) -> tuple[Float[np.ndarray, "classes statistics"], Float[np.ndarray, " classes"]]:
    """Return the weights and the biases of a multinomial logistic regression."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression  # slow to import
    from threadpoolctl import threadpool_limits

    regression: Any = LogisticRegression(C=INVERSE_PENALTY, max_iter=MAX_ITERATIONS)
    # The matrices are small: several threads would wait for each other, for many times as long on a busy machine.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(standardised, labels)
    weight, bias = np.zeros((num_classes, standardised.shape[1])), np.full(num_classes, MISSING_CLASS_BIAS)
    coefficients, intercepts = regression.coef_, regression.intercept_
    if len(regression.classes_) == 2:  # One logit z stands for the two logits -z/2 and z/2.
        coefficients, intercepts = (np.stack([-value[0] / 2, value[0] / 2]) for value in (coefficients, intercepts))
    weight[regression.classes_], bias[regression.classes_] = coefficients, intercepts
    return weight, bias
