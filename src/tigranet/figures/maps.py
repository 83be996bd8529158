"""Feature maps of a network, and the nodes that dynamic pooling keeps."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from tigranet.architecture import DP, MC, MO, SC
from tigranet.figures.names import shorten
from tigranet.graph_layer import Maps
from tigranet.graphs.grid import GridLaplacian
from tigranet.model import TIGraNet

ERROR_COLOUR = "#e3001b"
"""Colour of the frames of misclassified images. These frames are also thicker, for readers who do not see colours."""
INACTIVE_COLOUR = (0.86, 0.92, 0.97)
"""Pale blue, for the nodes that the pooling drops."""
MAX_CAPTION_LENGTH = 12
"""Captions are shortened to this many characters, so that they do not cover the next image."""
CONVOLUTIONS = (SC, MC, MO)
"""Kinds of layer whose maps are drawn."""
GAP_PIXELS = 2
"""Distance between two images of a row."""


def pooled_maps(net: TIGraNet, images: Float[Tensor, "count maps height width"]) -> list[Maps]:
    """Return the feature maps after each pooling layer.

    The maps of the last layer before the statistics are added if that layer is not a pooling layer.

    Args:
        net: The network.
        images: Images that it reads.

    Returns:
        The maps, in the order of the layers.
    """
    with torch.inference_mode():
        all_maps = net.maps(images)
    after_pooling = [maps for maps in all_maps if isinstance(maps.layer, DP)]
    return after_pooling if isinstance(all_maps[-1].layer, DP) else [*after_pooling, all_maps[-1]]


def map_planes(maps: Maps, image: int, count: int) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """Return the first maps of one image as two-dimensional arrays.

    Args:
        maps: Maps of a layer, on a pixel grid.
        image: Index of the image in the batch.
        count: Maximum number of maps.

    Returns:
        The maps, and for each of them the mask of its active nodes, or None if the layer is not a pooling layer.
    """
    size = _grid_size(maps)
    planes = [plane.reshape(size).numpy() for plane in maps.z[image, :count]]
    if maps.active is None:
        return planes, [None] * len(planes)
    return planes, [mask.reshape(size).numpy() for mask in maps.active[image, :count]]


def draw_image_row(
    axes: Axes,
    planes: Sequence[Float[np.ndarray, "_ _"]],
    masks: Sequence[np.ndarray | None] | None = None,
    misclassified: Sequence[bool] | None = None,
    captions: Sequence[str] | None = None,
) -> None:
    """Draw grey images side by side.

    Each image is scaled to its own range of values, and high values are dark. A constant image keeps its value: it is
    white at 0 or below and black at 1 or above.

    Args:
        axes: Axes to draw on.
        planes: The images. All are drawn in the size of the first.
        masks: For each image, the pixels to show, or None to show all. The other pixels are pale blue.
        misclassified: For each image, whether it has the frame of an error.
        captions: For each image, a text for its lower right corner.
    """
    height, width = planes[0].shape
    axes.set(xlim=(-GAP_PIXELS, len(planes) * (width + GAP_PIXELS)), ylim=(height + 1, -1), aspect="equal")
    axes.axis("off")
    axes.set_anchor("W")
    for number, plane in enumerate(planes):
        left = number * (width + GAP_PIXELS)
        grey = np.repeat(_grey_levels(plane)[..., None], 3, axis=2)
        if masks is not None and (mask := masks[number]) is not None:
            grey = np.where(mask[..., None], grey, np.array(INACTIVE_COLOUR))
        axes.imshow(grey, extent=(left, left + width, height, 0), vmin=0, vmax=1, interpolation="nearest")
        wrong = misclassified is not None and misclassified[number]
        edge, line_width = (ERROR_COLOUR, 2.2) if wrong else ("0.7", 0.6)
        axes.add_patch(Rectangle((left, 0), width, height, fill=False, edgecolor=edge, linewidth=line_width, zorder=4))
        if captions is not None:
            box = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            caption, colour = shorten(captions[number], MAX_CAPTION_LENGTH), ERROR_COLOUR if wrong else "0.1"
            axes.text(
                left + 0.95 * width, 0.95 * height, caption, ha="right", va="bottom", fontsize=8, weight="bold",
                color=colour, bbox=box, parse_math=False,
            )  # fmt: skip


def draw_pooling(
    axes: Sequence[Axes], net: TIGraNet, image: Float[Tensor, "maps height width"], count: int = 6
) -> None:
    r"""Draw an image and its maps after each pooling layer.

    The nodes that a map drops are pale. The last picture of a row is the union :math:`\Omega` of the nodes that any map
    keeps, in black: the next layer is computed on these nodes.

    Args:
        axes: One Axes for the image and one for each element of :func:`pooled_maps`.
        net: The network.
        image: The image.
        count: Maximum number of maps per layer.
    """
    draw_image_row(axes[0], [image.mean(0).numpy()])
    axes[0].set_title("image", fontsize=9, loc="left")
    for row, maps in zip(axes[1:], pooled_maps(net, image[None]), strict=True):
        planes, masks = map_planes(maps, 0, count)
        title = f"maps after {maps.layer}"
        if maps.omega is not None:
            omega = maps.omega[0, 0].reshape(_grid_size(maps)).numpy()
            planes, masks = [*planes, omega.astype(np.float32)], [*masks, omega]
            title += f"; right: nodes kept by at least one map ({omega.sum():,} of {omega.size:,})"
        draw_image_row(row, planes, masks)
        row.set_title(title, fontsize=9, loc="left")


def draw_convolution_map(
    axes: Axes,
    net: TIGraNet,
    images: Float[Tensor, "count maps height width"],
    layer: int,
    map_index: int,
    misclassified: Sequence[bool] | None = None,
) -> None:
    """Draw one map of a convolution for each image.

    Args:
        axes: Axes to draw on.
        net: The network.
        images: The images.
        layer: Index of the layer among :func:`convolutions` of the network, starting at 0.
        map_index: Index of the map, starting at 0.
        misclassified: For each image, whether its map has the frame of an error.
    """
    with torch.inference_mode():
        maps = [maps for maps in net.maps(images) if isinstance(maps.layer, CONVOLUTIONS)][layer]
    planes = [plane.reshape(_grid_size(maps)).numpy() for plane in maps.z[:, map_index]]
    draw_image_row(axes, planes, misclassified=misclassified)


def convolutions(net: TIGraNet) -> list[SC | MC | MO]:
    """Return the layers of a network whose maps rotate with the image: convolutions, and maxima over orientations.

    Args:
        net: The network.

    Returns:
        The layers in the notation, from input to output.
    """
    return [layer for layer in net.architecture.layers if isinstance(layer, CONVOLUTIONS)]


def _grid_size(maps: Maps) -> tuple[int, int]:
    """Return the height and width of maps, which a coarsening halves."""
    assert isinstance(maps.laplacian, GridLaplacian)
    return maps.laplacian.height, maps.laplacian.width


def _grey_levels(plane: Float[np.ndarray, "height width"]) -> Float[np.ndarray, "height width"]:
    """Scale a plane to grey levels in [0, 1], where its highest value is 0, which is black."""
    low, high = float(plane.min()), float(plane.max())
    if high > low:
        return 1 - (plane - low) / (high - low)
    return 1 - np.clip(plane, 0, 1)
