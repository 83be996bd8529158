"""Pictures of a trained network, those of the paper: filters, pooling, maps of turned and of test images, answers."""

from collections.abc import Mapping
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from tigranet.architecture import DP, MC, SC
from tigranet.data.augment.rigid import Isometry, rotate
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.accuracy import predict
from tigranet.figures.filters import draw_filters, end_of_spectrum
from tigranet.figures.maps import draw_layer, draw_pooling, draw_row, planes_of, pooled
from tigranet.figures.predictions import draw_answers
from tigranet.figures.svg import save_both
from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.model import TIGraNet

ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0)
MAPS = 5
"""Of a layer, at most so many are drawn."""
COLUMNS = 9
"""Images side by side."""
MISTAKES = 3
MOVED = 1000
"""Test images are moved, and classified, until there are so many."""


def save_gallery(
    folder: Path, net: TIGraNet, data: DataSet, seed: int = 0, rivals: Mapping[str, nn.Module] | None = None
) -> list[Path]:
    """Every picture that the network has layers for, as PNG and as SVG; the files that were written. With ``rivals``,
    their answers too."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"turned": _turned(net, data), "test-images": _test_images(net, data, seed)}
    if any(isinstance(layer, SC) for layer in net.architecture.layers):  # MC has a filter for each pair of maps
        drawn["filters"] = _filters(net, data)
    if any(isinstance(layer, DP) for layer in net.architecture.layers):
        drawn |= {"pooling": _pooling(net, data), "after-pooling": _after_pooling(net, data)}
    if rivals:
        drawn["answers"] = _answers({**rivals, "TIGraNet": net}, data, seed)
    return [path for name, figure in drawn.items() for path in save_both(figure, folder / name)]


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
    image = data.test.images[_example(net, data)]
    rows = 1 + len(pooled(net, image[None]))
    figure = Figure(figsize=(7, 1.25 * rows), layout="constrained")
    draw_pooling(list(figure.subplots(rows, 1, squeeze=False)[:, 0]), net, image)
    return figure


def _turned(net: TIGraNet, data: DataSet) -> Figure:
    """One image at eight angles, with the answers, and maps of the last convolution: they turn with it."""
    which = _example(net, data)
    image = data.test.images[which].expand(len(ANGLES), -1, -1, -1)
    images = rotate(image, torch.tensor(ANGLES), padding=data.test_motion.padding)
    answers = predict(net, images)
    said = [data.class_names[answer] for answer in answers.tolist()]
    layers = [layer for layer in net.architecture.layers if isinstance(layer, SC | MC)]
    count = min(MAPS, layers[-1].maps)
    figure = Figure(figsize=(7, 0.95 * (1 + count)), layout="constrained")
    places = figure.subplots(1 + count, 1)
    framed = (answers != data.test.labels[which]).tolist()
    draw_row(places[0], [plane.mean(0).numpy() for plane in images], framed=framed, said=said)
    told = f"an image at {len(ANGLES)} angles with the answers, and maps of layer {len(layers)}"
    places[0].set_title(told, fontsize=9, loc="left")
    for number in range(count):
        draw_layer(places[1 + number], net, images, len(layers) - 1, number)
    return figure


def _after_pooling(net: TIGraNet, data: DataSet) -> Figure:
    """An image of each class in a row of its own, with what the poolings leave of its first maps."""
    images = data.test.images[_one_of_each(data.test.labels)[:6]]
    height, width = images.shape[2:]
    kept = pooled(net, images)
    each = max(1, COLUMNS // len(kept))
    figure = Figure(figsize=(7, 0.82 * len(images) + 0.2), layout="constrained")
    places = figure.subplots(len(images), 1, squeeze=False)[:, 0]
    for number, (place, image) in enumerate(zip(places, images, strict=True)):
        left = [planes_of(maps, number, each, height, width) for maps in kept]
        planes = [image.mean(0).numpy(), *(plane for planes, _ in left for plane in planes)]
        draw_row(place, planes, [None, *(mask for _, masks in left for mask in masks)])
    counts = ", ".join(f"{min(each, maps.z.shape[1])} maps after {maps.layer}" for maps in kept)
    places[0].set_title(f"image, {counts}; pale: nodes that are dropped", fontsize=9, loc="left")
    return figure


def _test_images(net: TIGraNet, data: DataSet, seed: int) -> Figure:
    """Moved test images with the answers, some of them mistakes where there are any, and maps of every convolution."""
    moved = _moved(data, data.test_motion, seed)
    answers = predict(net, moved.images)
    wrong = answers != moved.labels
    right = torch.nonzero(~wrong).flatten()
    mistakes = torch.nonzero(wrong).flatten()[:MISTAKES]
    if len(right):
        rows = torch.cat([right[_one_of_each(moved.labels[right])][: COLUMNS - len(mistakes)], mistakes])
    else:
        rows = _one_of_each(moved.labels)[:COLUMNS]
    images, framed = moved.images[rows], wrong[rows].tolist()
    said = [data.class_names[answer] for answer in answers[rows].tolist()]
    layers = [layer for layer in net.architecture.layers if isinstance(layer, SC | MC)]
    shown = [(number, which) for number, layer in enumerate(layers) for which in range(min(3, layer.maps))]
    figure = Figure(figsize=(7, 0.9 * (1 + len(shown))), layout="constrained")
    places = figure.subplots(1 + len(shown), 1)
    draw_row(places[0], [plane.mean(0).numpy() for plane in images], framed=framed, said=said)
    told = f"test images, {data.test_motion}, with the answers; mistakes are framed"
    places[0].set_title(told, fontsize=9, loc="left")
    for place, (number, which) in zip(places[1:], shown, strict=True):
        draw_layer(place, net, images, number, which, framed)
        if which == 0:
            place.set_title(f"maps of layer {number + 1}", fontsize=9, loc="left")
    return figure


def _answers(networks: Mapping[str, nn.Module], data: DataSet, seed: int) -> Figure:
    """The first test images of each class, turned or moved as the data set is tested, as every network sees them."""
    how = (
        data.test_motion
        if data.test_motion.rotated or data.test_motion.max_shift
        else Isometry(True, padding=data.test_motion.padding)
    )
    moved = _moved(data, how, seed)
    figure = Figure(figsize=(7, 0.98 * len(networks)), layout="constrained")
    places = list(figure.subplots(len(networks), 1, squeeze=False)[:, 0])
    draw_answers(places, networks, moved, data.class_names, _one_of_each(moved.labels)[:COLUMNS].tolist())
    return figure


def _moved(data: DataSet, how: Isometry, seed: int) -> LabelledImages:
    """A draw of so many test images."""
    generator = torch.Generator().manual_seed(seed)
    return LabelledImages(how(data.test.images[:MOVED], generator), data.test.labels[:MOVED])


def _example(net: TIGraNet, data: DataSet) -> int:
    """The first test image of the third class, or of the last of fewer, that is read right upright, if any is: for
    digits, a 2, as in the paper."""
    own = torch.nonzero(data.test.labels == min(2, len(data.class_names) - 1)).flatten()
    right = own[predict(net, data.test.images[own]) == data.test.labels[own]]
    return int([*right, *own, 0][0])


def _one_of_each(labels: Tensor) -> Tensor:
    """Indices of all, in the order: the first of each class, the second of each class, ..."""
    count = torch.zeros(len(labels), dtype=torch.int64)
    for label in labels.unique():
        own = labels == label
        count[own] = torch.arange(int(own.sum()))
    return (count * (int(labels.max()) + 1) + labels).argsort(stable=True)
