"""
Pictures of the oriented networks
=================================

Draw the figures of docs/oriented.md, and print its table about the two stencils of the Laplacian.

The figures show images that isotropic filters cannot distinguish, product maps of a rotated and mirrored digit, and
augmented training images. The table shows how far the stencils are from isotropic.

Usage::

    python examples/oriented_pictures.py docs/images
"""

import sys
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tigranet import GridLaplacian, TIGraNet
from tigranet.architecture import PRESETS
from tigranet.data import load, rotate
from tigranet.data.augment.deform import deform
from tigranet.data.augment.photometric import tone
from tigranet.evaluation.curves import relative_change
from tigranet.evaluation.predictions import logits_of
from tigranet.graphs.grid import ISOTROPIC
from tigranet.ops import oriented_products
from tigranet.polynomials import chebyshev
from tigranet.testing import blobs
from tigranet.training import Recipe

BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # distinguishable for colour-blind readers
MARKERS = {"aligned": (BLUE, "o"), "rotated left": (ORANGE, "^"), "rotated right": (GREEN, "v")}
MAX_ORDER = 10


def main(folder: str) -> None:
    """Save the figures to ``folder`` and print the table."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    draw_strokes().savefig(Path(folder, "oriented-strokes.png"), dpi=160)
    draw_products().savefig(Path(folder, "oriented-products.png"), dpi=160)
    draw_training().savefig(Path(folder, "oriented-training.png"), dpi=160)
    print_stencils()


def smooth(y: torch.Tensor, graph: GridLaplacian, steps: int) -> torch.Tensor:
    """Smooth a signal by applying the isotropic polynomial I - L/2 ``steps`` times."""
    for _ in range(steps):
        y = y - graph(y) / 2
    return y


def two_strokes(quarter_turns: int) -> torch.Tensor:
    """Return an image of a short stroke near the centre and a longer one farther out, which is rotated."""
    near, far = torch.zeros(21, 21), torch.zeros(21, 21)
    near[9:12, 13] = 1
    far[5:16, 16] = 1
    return near + torch.rot90(far, quarter_turns)


def draw_strokes() -> Figure:
    """Draw three images that isotropic filters at the central pixel cannot distinguish, and their products there."""
    graph, centre = GridLaplacian(21, 21, diagonal=ISOTROPIC), 21 * 10 + 10
    images = {name: two_strokes(turns) for name, turns in zip(MARKERS, (0, 1, -1), strict=True)}
    figure = Figure(figsize=(9, 5), layout="constrained")
    rows = figure.subplots(2, 1, height_ratios=[1, 1.25])
    image_axes = [rows[0].inset_axes([0.02 + 0.34 * column, 0, 0.28, 1]) for column in range(3)]
    filter_axes = rows[1].inset_axes([0.06, 0.1, 0.5, 0.85])
    product_axes = rows[1].inset_axes([0.68, 0.1, 0.3, 0.85])
    for axes in rows:
        axes.axis("off")
    for axes, (name, image) in zip(image_axes, images.items(), strict=True):
        colour, marker = MARKERS[name]
        y = image.reshape(1, 1, -1)
        f, g = smooth(y, graph, 4), smooth(y, graph, 40)
        axes.imshow(1 - 0.8 * image, cmap="gray", vmin=0, vmax=1)
        for field, shade, length in ((g, "0.55", 8.5), (f, "black", 5)):
            x, y_down = (float(component[0, 0, centre]) for component in graph.gradient(field))
            reach = length / (x * x + y_down * y_down) ** 0.5
            arrow = {"arrowstyle": "-|>", "color": shade, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (10 + reach * x, 10 + reach * y_down), (10, 10), arrowprops=arrow)
        axes.set_title(name, fontsize=10, color=colour, weight="bold")
        axes.set(xticks=[], yticks=[])
        responses = [float(t[0, 0, centre]) for t in chebyshev(y, graph, MAX_ORDER)]
        size, fill = (13, "none") if name == "aligned" else (6, "full")  # markers coincide, and all must be visible
        filter_axes.plot(
            range(MAX_ORDER + 1), responses, marker, color=colour, markersize=size, fillstyle=fill, label=name
        )
        real, imaginary = (float(part) for part in oriented_products(torch.cat((f, g), 1), graph, 4)[0, :2, centre])
        product_axes.plot([0, real], [0, imaginary], color=colour)
        product_axes.plot(real, imaginary, marker, color=colour, markersize=8)
    filter_axes.set(xlabel="order k", title="isotropic filters $T_k(L - I)\\,y$ at the centre: equal")
    filter_axes.legend(frameon=False, fontsize=9)
    product_axes.axhline(0, color="0.85", zorder=0)
    product_axes.axvline(0, color="0.85", zorder=0)
    filter_axes.margins(0.05, 0.12)
    product_axes.margins(0.25)
    product_axes.set(
        xlabel="real part", ylabel="imaginary part", title="product at the centre: different", xticks=[0], yticks=[0]
    )
    title = "gradients at the central pixel after weak smoothing (black) and strong smoothing (grey)"
    figure.suptitle(title, fontsize=9, color="0.3")
    for axes in (filter_axes, product_axes):
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_products() -> Figure:
    """Draw a digit, rotated by 40 and 90 degrees and mirrored, with four product maps of two smoothed copies."""
    data = load("mnist-012").test
    image = data.images[data.labels == 2][:1]
    views = {
        "upright": image,
        "rotated by 40°": rotate(image, torch.tensor([40.0])),
        "rotated by 90°": torch.rot90(image, 1, (2, 3)),
        "mirrored": image.flip(3),
    }
    graph = GridLaplacian(28, 28, diagonal=ISOTROPIC)
    titles = ("image", "first order\nreal", "first order\nimaginary", "second order\nreal", "second order\nimaginary")
    figure = Figure(figsize=(7.4, 6.4), layout="constrained")
    grid = figure.subplots(len(views), 5)
    for row, (name, view) in zip(grid, views.items(), strict=True):
        y = view.flatten(2)
        planes = oriented_products(torch.cat((smooth(y, graph, 1), smooth(y, graph, 12)), 1), graph, 4)[0]
        row[0].imshow(1 - view[0, 0], cmap="gray", vmin=0, vmax=1)
        row[0].set_ylabel(name, fontsize=10)
        for axes, plane in zip(row[1:], planes, strict=True):
            draw_signed(axes, plane.reshape(28, 28))
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title, fontsize=10)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
    figure.suptitle("orange: positive, purple: negative", fontsize=9, color="0.3")
    return figure


def draw_training(steps: int = 4) -> Figure:
    """Draw three digits and their augmented versions in several training steps, by the recipe for 50 images."""
    data, recipe = load("mnist-012").train, Recipe.for_images(50, mixed=True)
    images = torch.stack([data.images[data.labels == digit][0] for digit in range(3)])
    torch.manual_seed(0)
    deformed = [deform(images, recipe.jitter, recipe.zoom, recipe.stretch, recipe.warp) for _ in range(steps)]
    toned = [tone(images, recipe.tone) for images in deformed]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    for panel, title, augmented in ((left, "deformed", deformed), (right, "deformed, with changed tones", toned)):
        panel.suptitle(title, fontsize=10)
        for digit, axes in enumerate(panel.subplots(3, 1)):
            row = [images[digit], *(batch[digit] for batch in augmented)]
            axes.imshow(1 - torch.cat(row, dim=-1)[0].clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            axes.axvline(images.shape[-1] - 0.5, color=BLUE, linewidth=1.5)
            axes.set(xticks=[], yticks=[])
    figure.supxlabel("left of the line: original image", fontsize=9, color="0.3")
    return figure


def draw_signed(axes: Axes, plane: torch.Tensor) -> None:
    """Draw positive values in orange, negative ones in purple and 0 in white. The largest 0.5 % are saturated."""
    limit = float(plane.abs().quantile(0.995))
    axes.imshow(plane, cmap="PuOr_r", vmin=-limit, vmax=limit)


def print_stencils(networks: int = 4, sigma: float = 1.0) -> None:
    """Print how much rotations and shifts of smooth images change the logits of untrained networks.

    The images are rotated, or shifted by a quarter of a pixel along both axes, without interpolation.
    """
    views = {f"{angle}°": blobs(float(angle), batch=16, sigma=sigma) for angle in (0, 5, 10, 20, 30, 45)}
    upright = views.pop("0°")
    views["shifted"] = shift_by_phase(upright, 0.25)
    architectures = {
        "one convolution": "MC[16,5]-S[4]-FC[64]",
        "two, products between": "MC[16,5]-OP[8]-MC[16,5]-S[4]-FC[64]",
        "two, products between, smoothed": "MC[16,5]-OP[8,1]-MC[16,5]-S[4]-FC[64]",
        "oriented-small": "oriented-small",
        "oriented-small, smoothed": PRESETS["oriented-small"].replace("OP[8]", "OP[8,1]"),
    }
    print(f"| relative change of the logits | `diagonal` | {' | '.join(views)} |")
    print(f"| --- | --- |{' --- |' * len(views)}")
    for name, layers in architectures.items():
        for diagonal in (1.0, ISOTROPIC):
            changes = torch.zeros(len(views))
            for seed in range(networks):
                torch.manual_seed(seed)
                net = TIGraNet(layers, num_classes=9, diagonal=diagonal)
                with torch.no_grad():
                    net(blobs(seed=99, batch=64, sigma=sigma))  # sets the running statistics
                reference = logits_of(net, upright)
                changes += torch.tensor([relative_change(logits_of(net, view), reference) for view in views.values()])
            cells = " | ".join(f"{change:.3f}" for change in (changes / networks).tolist())
            print(f"| {name} | {diagonal:g} | {cells} |", flush=True)


def shift_by_phase(images: torch.Tensor, pixels: float) -> torch.Tensor:
    """Shift images along both axes by the phases of their Fourier transform. They must be zero near the border."""
    phase = torch.exp(-2j * torch.pi * pixels * torch.fft.fftfreq(images.shape[-1], dtype=torch.float64))
    return torch.fft.ifft2(torch.fft.fft2(images.double()) * phase[:, None] * phase).real.float()


if __name__ == "__main__":
    main(sys.argv[1])
