"""Pictures of a trained network, in the manner of the paper's: filters, pooling, maps of turned and of test images."""

from pathlib import Path

import torch
from matplotlib.figure import Figure

from tigranet.architecture import SC
from tigranet.data.labelled import DataSet
from tigranet.data.transforms import rotate
from tigranet.evaluation.accuracy import predict
from tigranet.figures.filters import draw_filters, end_of_spectrum
from tigranet.figures.maps import draw_layer, draw_pooling, draw_row, pooled
from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.model import TIGraNet

ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0)
MAPS = 5
"""Of a layer, at most so many are drawn."""


def save_gallery(folder: Path, net: TIGraNet, data: DataSet, seed: int = 0) -> list[Path]:
    """Every picture, as PNG and as SVG; the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "filters": _filters(net, data),
        "pooling": _pooling(net, data),
        "turned": _turned(net, data),
        "test-images": _test_images(net, data, seed),
    }
    written = []
    for name, figure in drawn.items():
        for suffix in (".png", ".svg"):
            path = folder / f"{name}{suffix}"
            figure.savefig(path, dpi=200)
            written.append(path)
    return written


def _filters(net: TIGraNet, data: DataSet) -> Figure:
    convolutions = [layer for layer in net.graph_layers if isinstance(layer, SpectralConv)]
    height, width = data.test.images.shape[2:]
    end = end_of_spectrum(GridLaplacian(height, width, net.neighbours, net.boundary))
    figure = Figure(figsize=(3.4 * len(convolutions), 2.6), layout="constrained")
    for number, axes in enumerate(figure.subplots(1, len(convolutions), squeeze=False)[0]):
        draw_filters(axes, convolutions[number], end)
        axes.set_title(f"filters of layer {number + 1}", fontsize=10)
    return figure


def _pooling(net: TIGraNet, data: DataSet) -> Figure:
    image = data.test.images[0]
    rows = 1 + len(pooled(net, image))
    figure = Figure(figsize=(7, 1.35 * rows), layout="constrained")
    draw_pooling(list(figure.subplots(rows, 1, squeeze=False)[:, 0]), net, image)
    return figure


def _turned(net: TIGraNet, data: DataSet) -> Figure:
    """One image at eight angles, and maps of the last convolution: they turn with it."""
    image = data.test.images[:1].expand(len(ANGLES), -1, -1, -1)
    images = rotate(image, torch.tensor(ANGLES), outside=data.moved.outside)
    layers = [layer for layer in net.architecture.layers if isinstance(layer, SC)]
    count = min(MAPS, layers[-1].maps)
    figure = Figure(figsize=(7, 0.95 * (1 + count)), layout="constrained")
    places = figure.subplots(1 + count, 1)
    draw_row(places[0], [plane.mean(0).numpy() for plane in images])
    places[0].set_title(f"an image at {len(ANGLES)} angles, and maps of the last convolution", fontsize=9, loc="left")
    for which in range(count):
        draw_layer(places[1 + which], net, images, len(layers) - 1, which)
    return figure


def _test_images(net: TIGraNet, data: DataSet, seed: int) -> Figure:
    """Moved test images, some of them mistakes where there are any, with maps of every convolution."""
    generator = torch.Generator().manual_seed(seed)
    moved = data.moved(data.test.images[:500], generator)
    wrong = predict(net, moved) != data.test.labels[:500]
    mistakes, others = torch.nonzero(wrong).flatten(), torch.nonzero(~wrong).flatten()
    rows = torch.cat([others[: 8 - min(3, len(mistakes))], mistakes[:3]])
    images, framed = moved[rows], wrong[rows].tolist()
    layers = [layer for layer in net.architecture.layers if isinstance(layer, SC)]
    shown = [(number, which) for number, layer in enumerate(layers) for which in range(min(3, layer.maps))]
    figure = Figure(figsize=(7, 0.95 * (1 + len(shown))), layout="constrained")
    places = figure.subplots(1 + len(shown), 1)
    draw_row(places[0], [plane.mean(0).numpy() for plane in images], framed=framed)
    places[0].set_title(f"test images, {data.moved}; mistakes are framed", fontsize=9, loc="left")
    for place, (number, which) in zip(places[1:], shown, strict=True):
        draw_layer(place, net, images, number, which, framed)
        if which == 0:
            place.set_title(f"maps of layer {number + 1}", fontsize=9, loc="left")
    return figure
