"""The affine PCA classifier: each class is a plane, and a sample belongs to the nearest (Bruna & Mallat, 2013)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class AffinePCA(nn.Module):
    r"""A generative classifier: class c is modelled by its mean and its first principal directions.

    .. math:: d_c(\phi) = \|(\phi - \mu_c) - V_c V_c^\top (\phi - \mu_c)\|^2

    is the squared distance of a sample to the affine space of the class, and its label is the nearest class: the first
    of them where several are equally near. A class with fewer samples than directions has those that it spans.

    Args:
        num_features: how many numbers a sample is.
        num_classes: the number of classes.
        dimension: the number of directions.

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
                "num_features, num_classes and dimension are at least 1, "
                f"got {num_features}, {num_classes} and {dimension}"
            )
        if dimension >= num_features:
            raise ValueError(
                f"spaces of dimension {dimension} hold every sample of {num_features} features: "
                f"take a dimension of at most {num_features - 1}"
            )
        self.register_buffer("means", torch.zeros(num_classes, num_features))
        self.register_buffer("directions", torch.zeros(num_classes, dimension, num_features))
        self.register_buffer("fitted", torch.tensor(False))

    @torch.no_grad()
    def fit(self, samples: Float[Tensor, "samples features"], labels: Int[Tensor, " samples"]) -> "AffinePCA":
        """Find the space of each class."""
        classes, dimension, features = self.directions.shape
        if samples.ndim != 2 or samples.shape[1] != features or labels.shape != samples.shape[:1]:
            raise ValueError(
                f"this classifier is fitted to samples (n, {features}) and n labels, "
                f"got shapes {tuple(samples.shape)} and {tuple(labels.shape)}"
            )
        check_labels(labels, classes)
        if not samples.isfinite().all():
            raise ValueError("some samples are not finite")
        samples, labels = samples.to(self.means.device, torch.float64), labels.to(self.means.device)
        for c in range(classes):
            own = samples[labels == c]
            mu = own.mean(0)
            _, sizes, v = torch.linalg.svd(own - mu, full_matrices=False)
            spanned = sizes > 1e-10 * (own.norm(dim=1).max() + 1e-300) * len(own) ** 0.5
            v = v[spanned][:dimension]  # the others are directions of rounding
            self.means[c] = mu
            self.directions[c] = 0
            self.directions[c, : len(v)] = v.to(self.directions)
        self.fitted.fill_(True)
        return self

    def forward(self, samples: Float[Tensor, "batch features"]) -> Float[Tensor, "batch classes"]:
        """Logits: minus the squared distance to each class."""
        if not self.fitted:
            raise RuntimeError("this classifier has no classes yet: call fit(samples, labels) before")
        off = samples[:, None] - self.means
        along = torch.einsum("b c f, c d f -> b c d", off, self.directions)
        return -(off - torch.einsum("b c d, c d f -> b c f", along, self.directions)).square().sum(-1)

    @torch.no_grad()
    def predict(self, samples: Float[Tensor, "batch features"]) -> Int[Tensor, " batch"]:
        """The nearest class of each sample."""
        return self(samples).argmax(1)

    def extra_repr(self) -> str:
        classes, dimension, features = self.directions.shape
        return f"num_features={features}, num_classes={classes}, dimension={dimension}"


def check_labels(labels: Int[Tensor, " samples"], num_classes: int) -> None:
    """Every class has a sample, and every label a class."""
    came = set(labels.tolist())
    if came and not 0 <= min(came) <= max(came) < num_classes:
        raise ValueError(
            f"labels of {num_classes} classes are 0 to {num_classes - 1}, got some from {min(came)} to {max(came)}"
        )
    missing = sorted(set(range(num_classes)) - came)
    if missing:
        raise ValueError(
            f"no sample has label {', '.join(map(str, missing))}: each of the {num_classes} classes needs one, "
            "or num_classes is less"
        )
