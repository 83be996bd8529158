"""Transformed test images with the predictions of several networks, like Fig. 1 of the paper."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from torch import nn

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import accuracy, predict
from tigranet.evaluation.predictions import names_of_answers
from tigranet.figures.maps import draw_image_row


def draw_predictions(
    axes: Sequence[Axes],
    networks: Mapping[str, nn.Module],
    data: LabelledImages,
    class_names: Sequence[str],
    indices: Sequence[int],
) -> None:
    """Draw images with the predicted class of each network, one row per network.

    The prediction is written in the corner of the image, and misclassified images are framed. The title of a row is
    the accuracy of the network on all of ``data``.

    Args:
        axes: One Axes per network.
        networks: Networks by name.
        data: Images and labels.
        class_names: Names of the classes.
        indices: Indices of the images to draw.
    """
    examples = data.take(list(indices))
    planes = [image.mean(0).numpy() for image in examples.images]
    for row, (name, network) in zip(axes, networks.items(), strict=True):
        predictions = predict(network, examples.images)
        captions = [names_of_answers(class_names)[prediction] for prediction in predictions.tolist()]
        draw_image_row(row, planes, misclassified=(predictions != examples.labels).tolist(), captions=captions)
        title = f"{name}: accuracy {accuracy(network, data):.1f} % on {len(data.labels):,} images"
        row.set_title(title, fontsize=9, loc="left")
