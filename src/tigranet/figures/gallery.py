"""The paper's figures of a trained network: filters, pooling, feature maps, and predictions beside baselines."""

from collections.abc import Mapping
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from tigranet.architecture import DP, SC
from tigranet.data.augment.rigid import Isometry, rotate
from tigranet.data.dataset import DataSet, LabelledImages
from tigranet.evaluation.accuracy import predict
from tigranet.evaluation.predictions import names_of_answers
from tigranet.figures.figure_output import save_png_and_svg
from tigranet.figures.filters import draw_filters, largest_eigenvalue
from tigranet.figures.maps import (
    convolutions,
    draw_convolution_map,
    draw_image_row,
    draw_pooling,
    map_planes,
    pooled_maps,
)
from tigranet.figures.predictions import draw_predictions
from tigranet.graphs.grid import GridLaplacian
from tigranet.layers.spectral_conv import SpectralConv
from tigranet.model import TIGraNet

ROTATION_ANGLES = (0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0)
"""Degrees by which the example image is rotated."""
MAX_MAPS = 5
"""Maximum number of maps of the last convolution that are drawn for the rotated image."""
MAX_MAPS_PER_LAYER = 3
"""Maximum number of maps of each convolution that are drawn for the test images."""
COLUMNS = 9
"""Maximum number of images side by side."""
MAX_CLASSES = 6
"""Maximum number of classes in the figure of pooled maps."""
MAX_ERRORS = 3
"""Maximum number of misclassified images among the test images."""
MAX_TRANSFORMED_IMAGES = 1000
"""Maximum number of test images that are transformed and classified."""


def save_gallery(
    folder: Path, net: TIGraNet, data: DataSet, seed: int = 0, baselines: Mapping[str, nn.Module] | None = None
) -> list[Path]:
    """Save all figures of :func:`draw_gallery`, each as PNG and as SVG.

    Args:
        folder: Output folder. It is created if it does not exist.
        net: A trained network.
        data: Data set whose test images are drawn.
        seed: Seed of the random rotations and shifts.
        baselines: Trained baselines by name, for the figure ``answers``.

    Returns:
        The paths of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = draw_gallery(net, data, seed, baselines)
    return [path for name, figure in figures.items() for path in save_png_and_svg(figure, folder / name)]


def draw_gallery(
    net: TIGraNet, data: DataSet, seed: int = 0, baselines: Mapping[str, nn.Module] | None = None
) -> dict[str, Figure]:
    """Draw every figure for which the network has the layers.

    Args:
        net: A trained network.
        data: Data set whose test images are drawn.
        seed: Seed of the random rotations and shifts.
        baselines: Trained baselines by name.

    Returns:
        Figures by file name: ``turned`` and ``test-images`` always; ``filters`` if the network has SC layers;
        ``pooling`` and ``after-pooling`` if it has DP layers; ``answers`` if there are baselines.
    """
    figures = {"turned": _draw_rotated_image(net, data), "test-images": _draw_test_images(net, data, seed)}
    if any(isinstance(layer, SC) for layer in net.architecture.layers):  # MC has one filter per pair of maps: too many
        figures["filters"] = _draw_filter_responses(net, data)
    if any(isinstance(layer, DP) for layer in net.architecture.layers):
        figures |= {"pooling": _draw_pooling_of_one_image(net, data), "after-pooling": _draw_pooled_maps(net, data)}
    if baselines:
        figures["answers"] = _draw_predictions({**baselines, "TIGraNet": net}, data, seed)
    return figures


def _draw_filter_responses(net: TIGraNet, data: DataSet) -> Figure:
    """Draw the filters of each spectral convolution over the spectrum of the network's own grid."""
    spectral_layers = [layer for layer in net.graph_layers if isinstance(layer, SpectralConv)]
    height, width = data.test.images.shape[2:]
    end = largest_eigenvalue(GridLaplacian(height, width, net.neighbours, net.boundary, net.diagonal))
    figure = Figure(figsize=(3.4 * len(spectral_layers), 2.6), layout="constrained")
    for number, axes in enumerate(figure.subplots(1, len(spectral_layers), squeeze=False)[0]):
        draw_filters(axes, spectral_layers[number], end)
        axes.set_title(f"filters of convolution {number + 1}", fontsize=10)
    return figure


def _draw_pooling_of_one_image(net: TIGraNet, data: DataSet) -> Figure:
    image = data.test.images[_example_index(net, data)]
    rows = 1 + len(pooled_maps(net, image[None]))
    figure = Figure(figsize=(7, 1.25 * rows), layout="constrained")
    draw_pooling(list(figure.subplots(rows, 1, squeeze=False)[:, 0]), net, image)
    return figure


def _draw_rotated_image(net: TIGraNet, data: DataSet) -> Figure:
    """Draw one image at eight angles with the predictions, and maps of the last convolution, which rotate with it."""
    index = _example_index(net, data)
    image = data.test.images[index].expand(len(ROTATION_ANGLES), -1, -1, -1)
    images = rotate(image, torch.tensor(ROTATION_ANGLES), padding=data.test_motion.padding)
    predictions = predict(net, images)
    layers = convolutions(net)
    count = min(MAX_MAPS, layers[-1].maps)
    figure = Figure(figsize=(7, 0.95 * (1 + count)), layout="constrained")
    rows = figure.subplots(1 + count, 1)
    draw_image_row(
        rows[0],
        [image.mean(0).numpy() for image in images],
        misclassified=(predictions != data.test.labels[index]).tolist(),
        captions=[names_of_answers(data.class_names)[prediction] for prediction in predictions.tolist()],
    )
    title = f"one image at {len(ROTATION_ANGLES)} angles with its predictions; maps of convolution {len(layers)}"
    rows[0].set_title(title, fontsize=9, loc="left")
    for number in range(count):
        draw_convolution_map(rows[1 + number], net, images, len(layers) - 1, number)
    return figure


def _draw_pooled_maps(net: TIGraNet, data: DataSet) -> Figure:
    """Draw one image per class, one per row, with its first maps after each pooling layer."""
    images = data.test.images[_interleave_classes(data.test.labels)[:MAX_CLASSES]]
    layers = pooled_maps(net, images)
    maps_per_layer = max(1, COLUMNS // len(layers))
    figure = Figure(figsize=(7, 0.82 * len(images) + 0.2), layout="constrained")
    rows = figure.subplots(len(images), 1, squeeze=False)[:, 0]
    for number, (row, image) in enumerate(zip(rows, images, strict=True)):
        planes_and_masks = [map_planes(maps, number, maps_per_layer) for maps in layers]
        planes = [image.mean(0).numpy(), *(plane for planes, _ in planes_and_masks for plane in planes)]
        draw_image_row(row, planes, [None, *(mask for _, masks in planes_and_masks for mask in masks)])
    counts = ", ".join(f"{min(maps_per_layer, maps.z.shape[1])} maps after {maps.layer}" for maps in layers)
    rows[0].set_title(f"image, {counts}; pale: dropped nodes", fontsize=9, loc="left")
    return figure


def _draw_test_images(net: TIGraNet, data: DataSet, seed: int) -> Figure:
    """Draw transformed test images, some misclassified if there are any, and maps of every convolution."""
    test = _transform_test_images(data, data.test_motion, seed)
    predictions = predict(net, test.images)
    wrong = predictions != test.labels
    correct_indices = torch.nonzero(~wrong).flatten()
    error_indices = torch.nonzero(wrong).flatten()[:MAX_ERRORS]
    if len(correct_indices):
        in_class_order = correct_indices[_interleave_classes(test.labels[correct_indices])]
        indices = torch.cat([in_class_order[: COLUMNS - len(error_indices)], error_indices])
    else:
        indices = _interleave_classes(test.labels)[:COLUMNS]
    images, misclassified = test.images[indices], wrong[indices].tolist()
    captions = [names_of_answers(data.class_names)[prediction] for prediction in predictions[indices].tolist()]
    layer_and_map = [
        (number, map_index)
        for number, layer in enumerate(convolutions(net))
        for map_index in range(min(MAX_MAPS_PER_LAYER, layer.maps))
    ]
    figure = Figure(figsize=(7, 0.9 * (1 + len(layer_and_map))), layout="constrained")
    rows = figure.subplots(1 + len(layer_and_map), 1)
    draw_image_row(rows[0], [image.mean(0).numpy() for image in images], misclassified=misclassified, captions=captions)
    title = f"test images, {data.test_motion}, with predictions; errors are framed"
    rows[0].set_title(title, fontsize=9, loc="left")
    for row, (number, map_index) in zip(rows[1:], layer_and_map, strict=True):
        draw_convolution_map(row, net, images, number, map_index, misclassified)
        if map_index == 0:
            row.set_title(f"maps of convolution {number + 1}", fontsize=9, loc="left")
    return figure


def _draw_predictions(networks: Mapping[str, nn.Module], data: DataSet, seed: int) -> Figure:
    """Draw transformed test images with the predictions of every network; rotate them if the data set is upright."""
    motion = data.test_motion
    if not (motion.rotated or motion.max_shift):
        motion = Isometry(True, padding=motion.padding)
    test = _transform_test_images(data, motion, seed)
    figure = Figure(figsize=(7, 0.98 * len(networks)), layout="constrained")
    rows = list(figure.subplots(len(networks), 1, squeeze=False)[:, 0])
    draw_predictions(rows, networks, test, data.class_names, _interleave_classes(test.labels)[:COLUMNS].tolist())
    return figure


def _transform_test_images(data: DataSet, motion: Isometry, seed: int) -> LabelledImages:
    generator = torch.Generator().manual_seed(seed)
    images, labels = data.test.images[:MAX_TRANSFORMED_IMAGES], data.test.labels[:MAX_TRANSFORMED_IMAGES]
    return LabelledImages(motion(images, generator), labels)


def _example_index(net: TIGraNet, data: DataSet) -> int:
    """Return the first test image of the third class, or of the last class if there are fewer than three.

    Correctly classified images are preferred. For digits it is a 2, as in the paper.
    """
    indices = torch.nonzero(data.test.labels == min(2, len(data.class_names) - 1)).flatten()
    correct = indices[predict(net, data.test.images[indices]) == data.test.labels[indices]]
    return int([*correct, *indices, 0][0])


def _interleave_classes(labels: Tensor) -> Tensor:
    """Return all indices in the order: the first image of each class, the second of each class, and so on."""
    rank = torch.zeros(len(labels), dtype=torch.int64)
    for label in labels.unique():
        in_class = labels == label
        rank[in_class] = torch.arange(int(in_class.sum()))
    return (rank * (int(labels.max()) + 1) + labels).argsort(stable=True)
