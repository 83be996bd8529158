"""What the layers of a network see: maps, and the nodes that the pooling keeps."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from tigranet.architecture import DP, MC, SC
from tigranet.model import Maps, TIGraNet

WRONG = "#e3001b"
"""Of the frames of mistakes, which are thick as well: they are seen without colours too."""
DROPPED = (0.86, 0.92, 0.97)
"""A pale blue, for nodes that the pooling leaves out."""
GAP = 2


def pooled(net: TIGraNet, images: Float[Tensor, "count maps height width"]) -> list[Maps]:
    """What each pooling layer leaves of the images, and what the last layer leaves if that is no pooling."""
    with torch.inference_mode():
        walked = net.maps(images)
    kept = [maps for maps in walked if isinstance(maps.layer, DP)]
    return kept if isinstance(walked[-1].layer, DP) else [*kept, walked[-1]]


def planes_of(
    maps: Maps, which: int, count: int, height: int, width: int
) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """The first ``count`` maps of image ``which``, and the active nodes of each where the layer is a pooling."""
    planes = [plane.reshape(height, width).numpy() for plane in maps.z[which, :count]]
    if maps.active is None:
        return planes, [None] * len(planes)
    return planes, [mask.reshape(height, width).numpy() for mask in maps.active[which, :count]]


def draw_row(
    axes: Axes,
    planes: Sequence[Float[np.ndarray, "height width"]],
    masks: Sequence[np.ndarray | None] | None = None,
    framed: Sequence[bool] | None = None,
    said: Sequence[str] | None = None,
) -> None:
    """Planes side by side, each in its own range of greys, dark for high; what ``masks`` leave out is pale blue.
    Some are framed as mistakes. What is ``said`` of each stands in its lower right corner."""
    height, width = planes[0].shape
    axes.set(xlim=(-GAP, len(planes) * (width + GAP)), ylim=(height + 1, -1), aspect="equal")
    axes.axis("off")
    axes.set_anchor("W")
    for number, plane in enumerate(planes):
        left = number * (width + GAP)
        low, high = float(plane.min()), float(plane.max())
        low = low if high > low else min(0.0, low)  # the same everywhere: dark if positive
        grey = 1 - (plane - low) / (high - low if high > low else 1)
        shown = np.repeat(grey[..., None], 3, axis=2)
        if masks is not None and (mask := masks[number]) is not None:
            shown = np.where(mask[..., None], shown, np.array(DROPPED))
        axes.imshow(shown, extent=(left, left + width, height, 0), vmin=0, vmax=1, interpolation="nearest")
        wrong = framed is not None and framed[number]
        edge, line = (WRONG, 2.2) if wrong else ("0.7", 0.6)
        axes.add_patch(Rectangle((left, 0), width, height, fill=False, edgecolor=edge, linewidth=line, zorder=4))
        if said is not None:
            box = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            axes.text(
                left + 0.95 * width, 0.95 * height, said[number], ha="right", va="bottom", fontsize=8, weight="bold",
                color=WRONG if wrong else "0.1", bbox=box, parse_math=False,
            )  # fmt: skip


def draw_pooling(
    axes: Sequence[Axes], net: TIGraNet, image: Float[Tensor, "maps height width"], count: int = 6
) -> None:
    """The image; after each pooling ``count`` of its maps, where the nodes that it drops are pale, and the union
    Omega of what they keep, black: the nodes that the next layer answers on."""
    height, width = image.shape[1:]
    draw_row(axes[0], [image.mean(0).numpy()])
    axes[0].set_title("image", fontsize=9, loc="left")
    for place, maps in zip(axes[1:], pooled(net, image[None]), strict=True):
        planes, masks = planes_of(maps, 0, count, height, width)
        told = f"maps after {maps.layer}"
        if maps.omega is not None:
            omega = maps.omega[0, 0].reshape(height, width).numpy()
            planes, masks = [*planes, omega.astype(np.float32)], [*masks, omega]
            told += f"; last, the nodes that any map keeps, {omega.sum():,} of {omega.size:,}"
        draw_row(place, planes, masks)
        place.set_title(told, fontsize=9, loc="left")


def draw_layer(
    axes: Axes,
    net: TIGraNet,
    images: Float[Tensor, "count maps height width"],
    layer: int,
    which: int,
    framed: Sequence[bool] | None = None,
    said: Sequence[str] | None = None,
) -> None:
    """Map ``which`` of the ``layer``-th spectral convolution, for each image."""
    with torch.inference_mode():
        convolved = [maps for maps in net.maps(images) if isinstance(maps.layer, SC | MC)]
    height, width = images.shape[2:]
    planes = [plane.reshape(height, width).numpy() for plane in convolved[layer].z[:, which]]
    draw_row(axes, planes, framed=framed, said=said)
