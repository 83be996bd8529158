"""Moved test images with the answers of several networks, as the paper's Fig. 1."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from torch import nn

from tigranet.data.dataset import LabelledImages
from tigranet.evaluation.accuracy import accuracy, predict
from tigranet.figures.maps import draw_row


def draw_answers(
    axes: Sequence[Axes],
    networks: Mapping[str, nn.Module],
    moved: LabelledImages,
    class_names: Sequence[str],
    shown: Sequence[int],
) -> None:
    """A network a row: those of ``moved`` that are ``shown``, each with its answer in the corner, mistakes framed.
    Above it, how often it is right on all of ``moved``."""
    some = moved.take(list(shown))
    planes = [image.mean(0).numpy() for image in some.images]
    for place, (name, network) in zip(axes, networks.items(), strict=True):
        answers = predict(network, some.images)
        said = [class_names[answer] for answer in answers.tolist()]
        draw_row(place, planes, framed=(answers != some.labels).tolist(), said=said)
        told = f"{name}: {accuracy(network, moved):.1f} % of {len(moved.labels):,} right"
        place.set_title(told, fontsize=9, loc="left")
