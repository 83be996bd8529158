"""Draw what docs/oriented.md shows: what isotropic filters lose, and product maps of a digit, turned and mirrored, and
what training images are made into; and print how far the two stencils of the Laplacian are from isotropic.

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

BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # told apart by all readers
MARKS = {"aligned": (BLUE, "o"), "turned left": (ORANGE, "^"), "turned right": (GREEN, "v")}
ORDER = 10


def main(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    draw_strokes().savefig(Path(folder, "oriented-strokes.png"), dpi=160)
    draw_products().savefig(Path(folder, "oriented-products.png"), dpi=160)
    draw_training().savefig(Path(folder, "oriented-training.png"), dpi=160)
    print_stencils()


def smoothed(y: torch.Tensor, graph: GridLaplacian, steps: int) -> torch.Tensor:
    """A polynomial of L that looks alike in all directions: (I - L/2) applied so many times."""
    for _ in range(steps):
        y = y - graph(y) / 2
    return y


def strokes(turn: int) -> torch.Tensor:
    """A stroke near the central pixel and a longer one farther out, which is turned about that pixel by quarters."""
    near, far = torch.zeros(21, 21), torch.zeros(21, 21)
    near[9:12, 13] = 1
    far[5:16, 16] = 1
    return near + torch.rot90(far, turn)


def draw_strokes() -> Figure:
    """Three images that no isotropic filter at the centre tells apart, and their products there."""
    graph, centre = GridLaplacian(21, 21, diagonal=ISOTROPIC), 21 * 10 + 10
    images = {name: strokes(turn) for name, turn in zip(MARKS, (0, 1, -1), strict=True)}
    figure = Figure(figsize=(9, 5), layout="constrained")
    rows = figure.subplots(2, 1, height_ratios=[1, 1.25])
    above = [rows[0].inset_axes([0.02 + 0.34 * column, 0, 0.28, 1]) for column in range(3)]
    below = [rows[1].inset_axes([0.06, 0.1, 0.5, 0.85]), rows[1].inset_axes([0.68, 0.1, 0.3, 0.85])]
    for axes in rows:
        axes.axis("off")
    for place, (name, image) in zip(above, images.items(), strict=True):
        colour, mark = MARKS[name]
        y = image.reshape(1, 1, -1)
        f, g = smoothed(y, graph, 4), smoothed(y, graph, 40)
        place.imshow(1 - 0.8 * image, cmap="gray", vmin=0, vmax=1)
        for field, shade, length in ((g, "0.55", 8.5), (f, "black", 5)):
            x, down = (float(part[0, 0, centre]) for part in graph.gradient(field))
            reach = length / (x * x + down * down) ** 0.5
            arrow = {"arrowstyle": "-|>", "color": shade, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
            place.annotate("", (10 + reach * x, 10 + reach * down), (10, 10), arrowprops=arrow)
        place.set_title(name, fontsize=10, color=colour, weight="bold")
        place.set(xticks=[], yticks=[])
        seen = [float(t[0, 0, centre]) for t in chebyshev(y, graph, ORDER)]
        size, fill = (13, "none") if name == "aligned" else (6, "full")  # one upon the other, all are seen
        below[0].plot(range(ORDER + 1), seen, mark, color=colour, markersize=size, fillstyle=fill, label=name)
        real, imaginary = (float(part) for part in oriented_products(torch.cat((f, g), 1), graph, 4)[0, :2, centre])
        below[1].plot([0, real], [0, imaginary], color=colour)
        below[1].plot(real, imaginary, mark, color=colour, markersize=8)
    below[0].set(xlabel="order k", title="isotropic filters there: $T_k(L - I)\\,y$, equal for all three")
    below[0].legend(frameon=False, fontsize=9)
    below[1].axhline(0, color="0.85", zorder=0)
    below[1].axvline(0, color="0.85", zorder=0)
    below[0].margins(0.05, 0.12)
    below[1].margins(0.25)
    below[1].set(
        xlabel="real part", ylabel="imaginary part", title="the product there: all differ", xticks=[0], yticks=[0]
    )
    told = "the gradients at the central pixel: black, of a little smoothing; grey, of much"
    figure.suptitle(told, fontsize=9, color="0.3")
    for axes in below:
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_products() -> Figure:
    """A digit, turned by 40 and by 90 degrees, and mirrored, with the four products of two smoothed copies."""
    data = load("mnist-012").test
    image = data.images[data.labels == 2][:1]
    views = {
        "upright": image,
        "turned by 40°": rotate(image, torch.tensor([40.0])),
        "turned by 90°": torch.rot90(image, 1, (2, 3)),
        "mirrored": image.flip(3),
    }
    graph = GridLaplacian(28, 28, diagonal=ISOTROPIC)
    titles = ("image", "first order\nreal", "first order\nimaginary", "second order\nreal", "second order\nimaginary")
    figure = Figure(figsize=(7.4, 6.4), layout="constrained")
    places = figure.subplots(len(views), 5)
    for row, (name, view) in zip(places, views.items(), strict=True):
        y = view.flatten(2)
        planes = oriented_products(torch.cat((smoothed(y, graph, 1), smoothed(y, graph, 12)), 1), graph, 4)[0]
        row[0].imshow(1 - view[0, 0], cmap="gray", vmin=0, vmax=1)
        row[0].set_ylabel(name, fontsize=10)
        for place, plane in zip(row[1:], planes, strict=True):
            signed(place, plane.reshape(28, 28))
    for place, title in zip(places[0], titles, strict=True):
        place.set_title(title, fontsize=10)
    for place in places.flat:
        place.set(xticks=[], yticks=[])
    figure.suptitle("orange is positive, purple negative", fontsize=9, color="0.3")
    return figure


def draw_training(shown: int = 4) -> Figure:
    """Three digits as they are, and as a network sees them in so many steps, by the recipe for 50 images."""
    data, recipe = load("mnist-012").train, Recipe.for_images(50, mixed=True)
    images = torch.stack([data.images[data.labels == digit][0] for digit in range(3)])
    torch.manual_seed(0)
    deformed = [deform(images, recipe.jitter, recipe.zoom, recipe.stretch, recipe.warp) for _ in range(shown)]
    rows = {"deformed": deformed, "and in other tones": [tone(images, recipe.tone) for images in deformed]}
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for part, (name, seen) in zip(figure.subfigures(1, 2), rows.items(), strict=True):
        part.suptitle(name, fontsize=10)
        for line, place in zip(range(3), part.subplots(3, 1), strict=True):
            steps = [images[line], *(image[line] for image in seen)]
            place.imshow(1 - torch.cat(steps, dim=-1)[0].clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            place.axvline(images.shape[-1] - 0.5, color=BLUE, linewidth=1.5)
            place.set(xticks=[], yticks=[])
    figure.supxlabel("left of the line, the image as it is", fontsize=9, color="0.3")
    return figure


def signed(axes: Axes, plane: torch.Tensor) -> None:
    """Orange for positive, purple for negative, white for nothing; the strongest half per cent saturates."""
    reach = float(plane.abs().quantile(0.995))
    axes.imshow(plane, cmap="PuOr_r", vmin=-reach, vmax=reach)


def print_stencils(networks: int = 4, sigma: float = 1.0) -> None:
    """The change of the logits of fresh networks when smooth images are turned, and when they are shifted instead, by a
    quarter of a pixel along both axes; neither by interpolation."""
    turned = {f"{angle}°": blobs(float(angle), batch=16, sigma=sigma) for angle in (0, 5, 10, 20, 30, 45)}
    upright = turned.pop("0°")
    moved = turned | {"shifted": shifted(upright, 0.25)}
    shown = {
        "one convolution": "MC[16,5]-S[4]-FC[64]",
        "two, products between": "MC[16,5]-OP[8]-MC[16,5]-S[4]-FC[64]",
        "two, products between, smoothed": "MC[16,5]-OP[8,1]-MC[16,5]-S[4]-FC[64]",
        "oriented-small": "oriented-small",
        "oriented-small, smoothed": PRESETS["oriented-small"].replace("OP[8]", "OP[8,1]"),
    }
    print(f"| relative change of the logits | `diagonal` | {' | '.join(moved)} |")
    print(f"| --- | --- |{' --- |' * len(moved)}")
    for name, layers in shown.items():
        for diagonal in (1.0, ISOTROPIC):
            changes = torch.zeros(len(moved))
            for seed in range(networks):
                torch.manual_seed(seed)
                net = TIGraNet(layers, num_classes=9, diagonal=diagonal)
                with torch.no_grad():
                    net(blobs(seed=99, batch=64, sigma=sigma))  # how large its maps are
                before = logits_of(net, upright)
                changes += torch.tensor([relative_change(logits_of(net, image), before) for image in moved.values()])
            cells = " | ".join(f"{change:.3f}" for change in (changes / networks).tolist())
            print(f"| {name} | {diagonal:g} | {cells} |", flush=True)


def shifted(images: torch.Tensor, pixels: float) -> torch.Tensor:
    """Along both axes, by turning the phase of each wave; nothing may be near the border."""
    phase = torch.exp(-2j * torch.pi * pixels * torch.fft.fftfreq(images.shape[-1], dtype=torch.float64))
    return torch.fft.ifft2(torch.fft.fft2(images.double()) * phase[:, None] * phase).real.float()


if __name__ == "__main__":
    main(sys.argv[1])
