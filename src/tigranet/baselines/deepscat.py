"""DeepScat: invariant wavelet scattering with the affine PCA classifier, as written in the paper's Table 1."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from tigranet.baselines.affine_pca import AffinePCA, check_labels
from tigranet.baselines.scattering import Scattering
from tigranet.notation import Layer, Notation

BATCH_SIZE = 64
"""Number of images that are scattered at once by ``fit`` and ``predict``."""
MIN_RELATIVE_SPREAD = 1e-6
"""A feature that varies less than this fraction of its magnitude is constant up to rounding, and is not scaled."""


@dataclass(frozen=True)
class W(Layer):
    """Wavelet scattering."""

    order: int
    """Order of the scattering: 1 or 2."""
    scales: int
    """Number of scales."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order > 2:
            raise ValueError(f"W has order of at most 2, got {self.order}")


@dataclass(frozen=True)
class PCA(Layer):
    """Affine PCA classifier."""

    dimension: int
    """Dimension of the subspace of each class."""


@dataclass(frozen=True)
class ScatArchitecture(Notation):
    """Scattering and its classifier in the paper's notation: one W layer and one PCA layer.

    Args:
        layers: The layers in order.

    Example:
        >>> str(ScatArchitecture.parse("paper"))
        'W[2,5]-PCA[20]'
    """

    FIRST = (W,)
    FOLLOW: ClassVar = {W: (PCA,), PCA: ()}
    NEEDED = PCA
    ORDER = "a DeepScat has one W layer, then one PCA layer"
    PRESETS: ClassVar = {"paper": "W[2,5]-PCA[20]"}


class DeepScat(nn.Module):
    """Scattering features, which shifts and rotations do not change, and one affine subspace per class.

    No filter is learned. The paper writes 'order O and maximum scales J' and W[2,5]. We read this as five scales, each
    twice as coarse as the one before, on images of any size. The paper does not state how features are scaled before
    the PCA. Here each feature is divided by its standard deviation over the training images, because otherwise a few
    large features would dominate (reading 23).

    The network is fitted in closed form. It has no parameters; everything is stored in buffers. ``forward`` returns
    logits, so it is evaluated like every other network.

    Args:
        architecture: The paper's notation, the preset ``paper``, or a parsed value.
        num_classes: Number of classes.
        in_maps: Number of channels of the images.

    Raises:
        ValueError: If the architecture is invalid, or a number is less than 1.

    Example:
        >>> images, labels = torch.rand(6, 1, 12, 12), torch.tensor([0, 1, 2, 0, 1, 2])
        >>> DeepScat("W[2,3]-PCA[1]", num_classes=3).fit(images, labels)(images).shape
        torch.Size([6, 3])
    """

    spread: Float[Tensor, " features"]

    def __init__(self, architecture: str | ScatArchitecture, num_classes: int, in_maps: int = 1) -> None:
        super().__init__()
        if isinstance(architecture, str):
            architecture = ScatArchitecture.parse(architecture)
        if min(num_classes, in_maps) < 1:
            raise ValueError(f"num_classes and in_maps must be at least 1, got {num_classes} and {in_maps}")
        self.architecture, self.num_classes, self.in_maps = architecture, num_classes, in_maps
        match architecture.layers:
            case (W(order, scales), PCA(dimension)):
                self.scattering = Scattering(order, scales)
        num_features = in_maps * self.scattering.features_per_map
        self.register_buffer("spread", torch.ones(num_features))
        self.classifier = AffinePCA(num_features, num_classes, dimension)

    def features(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch features"]:
        """Compute the invariant scattering coefficients on the device of this network.

        Args:
            images: Images of any size.

        Returns:
            The coefficients, not yet scaled.

        Raises:
            ValueError: If the images have another number of dimensions or channels.
        """
        if images.ndim != 4 or images.shape[1] != self.in_maps:
            raise ValueError(
                f"expected images of shape (batch, {self.in_maps}, height, width), got {tuple(images.shape)}"
            )
        return self.scattering(images.to(self.spread.device))

    @torch.no_grad()
    def fit(
        self,
        images: Float[Tensor, "batch in_maps height width"],
        labels: Int[Tensor, " batch"],
        console: Console | None = None,
    ) -> "DeepScat":
        """Compute the scale of each feature and the subspace of each class.

        Args:
            images: Training images.
            labels: Classes of the images. Every class needs at least one image.
            console: Console for a progress bar, or None for no progress bar.

        Returns:
            This network.

        Raises:
            ValueError: If there is not one label per image, a label is out of range, or a class has no image.
        """
        if labels.shape != images.shape[:1]:
            raise ValueError(f"expected one label for each of {len(images)} images, got shape {tuple(labels.shape)}")
        check_labels(labels, self.num_classes)
        batches = images.split(BATCH_SIZE)
        progress = track(batches, "Scattering", console=console, transient=True, disable=console is None)
        phi = torch.cat([self.features(batch) for batch in progress]).double()
        spread = phi.std(0, correction=0)
        spread[spread <= MIN_RELATIVE_SPREAD * phi.abs().amax(0)] = 1
        self.spread.copy_(spread)
        self.classifier.fit(phi / self.spread, labels)
        return self

    def forward(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch classes"]:
        """Return logits: minus the squared distance of the features to the subspace of each class.

        Args:
            images: Images of any size.

        Returns:
            The logits.
        """
        return self.classifier(self.features(images) / self.spread)

    @torch.inference_mode()
    def predict(self, images: Float[Tensor, "batch in_maps height width"]) -> Int[Tensor, " batch"]:
        """Return the predicted class of each image.

        Args:
            images: Images of any size.

        Returns:
            Class indices.
        """
        return torch.cat([self(batch).argmax(1) for batch in images.split(BATCH_SIZE)])

    def extra_repr(self) -> str:
        """Return the constructor arguments for ``repr``."""
        return f"'{self.architecture}', num_classes={self.num_classes}, in_maps={self.in_maps}"
