"""The affine PCA classifier: one affine subspace per class, and the nearest one wins (Bruna & Mallat, 2013)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class AffinePCA(nn.Module):
    r"""A generative classifier that models each class by its mean and its first principal directions.

    The squared distance of a sample :math:`\phi` to the affine subspace of class c is

    .. math:: d_c(\phi) = \|(\phi - \mu_c) - V_c V_c^\top (\phi - \mu_c)\|^2

    and the predicted class is the one with the smallest distance, or the first of them if several are equally near. A
    class with too few samples for ``dimension`` directions uses the directions that its samples span.

    Args:
        num_features: Number of features of a sample.
        num_classes: Number of classes.
        dimension: Number of principal directions per class, less than ``num_features``.

    Raises:
        ValueError: If an argument is less than 1, or ``dimension`` is not less than ``num_features``.

    Example:
        >>> samples = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])  # two lines
        >>> classifier = AffinePCA(num_features=2, num_classes=2, dimension=1).fit(samples, torch.tensor([0, 0, 1, 1]))
        >>> classifier.predict(torch.tensor([[9.0, 0.5]]))
        tensor([0])
    """

    means: Float[Tensor, "classes features"]
    directions: Float[Tensor, "classes dimension features"]
    fitted: Tensor

    def __init__(self, num_features: int, num_classes: int, dimension: int) -> None:
        super().__init__()
        if min(num_features, num_classes, dimension) < 1:
            raise ValueError(
                "num_features, num_classes and dimension must be at least 1, "
                f"got {num_features}, {num_classes} and {dimension}"
            )
        if dimension >= num_features:
            raise ValueError(
                f"subspaces of dimension {dimension} contain every sample of {num_features} features: "
                f"use a dimension of at most {num_features - 1}"
            )
        self.register_buffer("means", torch.zeros(num_classes, num_features))
        self.register_buffer("directions", torch.zeros(num_classes, dimension, num_features))
        self.register_buffer("fitted", torch.tensor(False))

    @torch.no_grad()
    def fit(self, samples: Float[Tensor, "samples features"], labels: Int[Tensor, " samples"]) -> "AffinePCA":
        """Compute the subspace of each class. Earlier fits are overwritten.

        Args:
            samples: Training samples.
            labels: Classes of the samples. Every class needs at least one sample.

        Returns:
            This classifier.

        Raises:
            ValueError: If the shapes do not match, a label is out of range, a class has no sample, or a sample is not
                finite.
        """
        classes, dimension, features = self.directions.shape
        if samples.ndim != 2 or samples.shape[1] != features or labels.shape != samples.shape[:1]:
            raise ValueError(
                f"expected samples of shape (n, {features}) and n labels, "
                f"got shapes {tuple(samples.shape)} and {tuple(labels.shape)}"
            )
        check_labels(labels, classes)
        finite = samples.isfinite().all(1)
        if not finite.all():
            raise ValueError(
                f"expected finite samples, got NaN or infinity in {int((~finite).sum())} of {len(samples)} samples"
            )
        samples, labels = samples.to(self.means.device, torch.float64), labels.to(self.means.device)
        for c in range(classes):
            class_samples = samples[labels == c]
            mu = class_samples.mean(0)
            _, singular_values, v = torch.linalg.svd(class_samples - mu, full_matrices=False)
            largest_norm = class_samples.norm(dim=1).max() + 1e-300
            spanned = singular_values > 1e-10 * largest_norm * len(class_samples) ** 0.5
            v = v[spanned][:dimension]  # directions with smaller singular values are rounding errors
            self.means[c] = mu
            self.directions[c] = 0
            self.directions[c, : len(v)] = v.to(self.directions)
        self.fitted.fill_(True)
        return self

    def forward(self, samples: Float[Tensor, "batch features"]) -> Float[Tensor, "batch classes"]:
        """Return logits: minus the squared distance to the subspace of each class.

        Args:
            samples: Samples.

        Returns:
            The logits.

        Raises:
            RuntimeError: If the classifier has not been fitted.
        """
        if not self.fitted:
            raise RuntimeError("this classifier has not been fitted: call fit(samples, labels) first")
        offset = samples[:, None] - self.means
        coordinates = torch.einsum("b c f, c d f -> b c d", offset, self.directions)
        projection = torch.einsum("b c d, c d f -> b c f", coordinates, self.directions)
        return -(offset - projection).square().sum(-1)

    @torch.no_grad()
    def predict(self, samples: Float[Tensor, "batch features"]) -> Int[Tensor, " batch"]:
        """Return the nearest class of each sample.

        Args:
            samples: Samples.

        Returns:
            Class indices.
        """
        return self(samples).argmax(1)

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        classes, dimension, features = self.directions.shape
        return f"num_features={features}, num_classes={classes}, dimension={dimension}"


def check_labels(labels: Int[Tensor, " samples"], num_classes: int) -> None:
    """Check that every label is a class and that every class has a sample.

    Args:
        labels: Class indices.
        num_classes: Number of classes.

    Raises:
        ValueError: If a label is out of range or a class has no sample.
    """
    present = set(labels.tolist())
    if present and not 0 <= min(present) <= max(present) < num_classes:
        raise ValueError(
            f"expected labels from 0 to {num_classes - 1} for {num_classes} classes, "
            f"got labels from {min(present)} to {max(present)}"
        )
    missing = sorted(set(range(num_classes)) - present)
    if missing:
        raise ValueError(
            f"no sample has label {', '.join(map(str, missing))}: provide at least one sample for each of the "
            f"{num_classes} classes, or reduce num_classes"
        )
