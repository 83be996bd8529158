"""DeepScat: invariant scattering and the affine PCA classifier, as the paper's Table 1 writes it."""

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


@dataclass(frozen=True)
class W(Layer):
    """Wavelet scattering: of that order, at that many scales."""

    order: int
    scales: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order > 2:
            raise ValueError(f"W has order of at most 2, got {self.order}")


@dataclass(frozen=True)
class PCA(Layer):
    """Affine PCA classifier: the dimension of the space of each class."""

    dimension: int


@dataclass(frozen=True)
class ScatArchitecture(Notation):
    """Scattering and its classifier in the paper's notation: W and PCA.

    >>> str(ScatArchitecture.parse("paper"))
    'W[2,5]-PCA[20]'
    """

    FIRST = (W,)
    FOLLOW: ClassVar = {W: (PCA,), PCA: ()}
    NEEDED = PCA
    ORDER = "a DeepScat is one W layer, then one PCA layer"
    PRESETS: ClassVar = {"paper": "W[2,5]-PCA[20]"}


class DeepScat(nn.Module):
    """Wavelets and no learned filter: features that shifts and turns do not change, and a space for each class.

    The paper has 'order O and maximum scales J' and W[2,5]. We read five scales, each twice as coarse as the one
    before, on images of any size. It does not say how features are scaled before the PCA: here each by its standard
    deviation over the training images, or a few large ones would decide (reading 23).

    It is fitted and not trained: there is no parameter, and what is found lies in buffers. ``forward`` gives logits, so
    that it is measured as every other network is.

    Args:
        architecture: the paper's notation, the preset ``paper``, or a parsed value.
        num_classes: the number of classes.
        in_maps: channels of the images.

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
            raise ValueError(f"num_classes and in_maps are at least 1, got {num_classes} and {in_maps}")
        self.architecture, self.num_classes, self.in_maps = architecture, num_classes, in_maps
        match architecture.layers:
            case (W(order, scales), PCA(dimension)):
                self.scattering = Scattering(order, scales)
        num_features = in_maps * self.scattering.features_a_map
        self.register_buffer("spread", torch.ones(num_features))
        self.classifier = AffinePCA(num_features, num_classes, dimension)

    def features(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch features"]:
        """The invariant coefficients, computed where this network is."""
        if images.ndim != 4 or images.shape[1] != self.in_maps:
            raise ValueError(
                f"this network reads (batch, {self.in_maps}, height, width), got shape {tuple(images.shape)}"
            )
        return self.scattering(images.to(self.spread.device))

    @torch.no_grad()
    def fit(
        self,
        images: Float[Tensor, "batch in_maps height width"],
        labels: Int[Tensor, " batch"],
        console: Console | None = None,
    ) -> "DeepScat":
        """Find the space of each class. Progress is drawn on ``console``, if one is given."""
        if labels.shape != images.shape[:1]:
            raise ValueError(f"{len(images)} images have as many labels, got shape {tuple(labels.shape)}")
        check_labels(labels, self.num_classes)
        some = images.split(64)
        drawn = track(some, "Scattering", console=console, transient=True, disable=console is None)
        phi = torch.cat([self.features(batch) for batch in drawn]).double()
        spread = phi.std(0, correction=0)
        spread[spread <= 1e-6 * phi.abs().amax(0)] = 1  # the same number in every image, but for rounding
        self.spread.copy_(spread)
        self.classifier.fit(phi / self.spread, labels)
        return self

    def forward(self, images: Float[Tensor, "batch in_maps height width"]) -> Float[Tensor, "batch classes"]:
        """Logits: minus the squared distance of the features to the space of each class."""
        return self.classifier(self.features(images) / self.spread)

    @torch.inference_mode()
    def predict(self, images: Float[Tensor, "batch in_maps height width"]) -> Int[Tensor, " batch"]:
        """The class of each image."""
        return torch.cat([self(batch).argmax(1) for batch in images.split(64)])

    def extra_repr(self) -> str:
        return f"'{self.architecture}', num_classes={self.num_classes}, in_maps={self.in_maps}"
