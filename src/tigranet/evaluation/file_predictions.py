"""What a network says of image files: any number of them, a few in memory at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.data.letterbox import UnreadableFile, read_letterboxed
from tigranet.model import TIGraNet

UNKNOWN = "unknown"
BATCH = 64


@dataclass(frozen=True)
class Prediction:
    """The most probable class of one image, or ``unknown`` where its probability is too low."""

    path: str
    label: str
    probability: float


def predict_files(
    net: TIGraNet, paths: Iterable[Path], reject: float = 0.0, batch_size: int = BATCH
) -> Iterator[Prediction | UnreadableFile]:
    """An answer to each file, in order; a file that cannot be read yields the reason.

    Images are brought to the size that ``net`` was trained on. Below the probability ``reject`` the label is 'unknown'.
    """
    if not 0 <= reject <= 1:
        raise ValueError(f"reject is a probability in [0, 1], got {reject}")
    for path, logits in _streamed(net, net, paths, batch_size):
        if isinstance(logits, UnreadableFile):
            yield logits
            continue
        probability, label = logits.softmax(0).max(0)
        known = float(probability) >= reject
        yield Prediction(str(path), net.class_names[int(label)] if known else UNKNOWN, round(float(probability), 6))


def file_features(
    net: TIGraNet, paths: Iterable[Path], batch_size: int = BATCH
) -> Iterator[tuple[Path, Float[Tensor, " statistics"] | UnreadableFile]]:
    """The invariant statistics of each file, in order, or the reason why there are none."""
    yield from _streamed(net, net.features, paths, batch_size)


def feature_names(net: TIGraNet) -> list[str]:
    """What each statistic is: the mean or the variance, of which map, of which Chebyshev order.

    >>> feature_names(TIGraNet("SC[2,3]-S[1]", 2))[:5]
    ['map0_mean0', 'map0_variance0', 'map0_mean1', 'map0_variance1', 'map1_mean0']
    """
    maps = len(net.maps(next(net.parameters()).new_zeros(1, net.in_maps, 3, 3))[-1].z[0])
    each = [f"{name}{k}" for k in range(net.statistics.order + 1) for name in ("mean", "variance")]
    return [f"map{i}_{name}" for i in range(maps) for name in each]


def _streamed(
    net: TIGraNet, compute: Callable[[Tensor], Tensor], paths: Iterable[Path], batch_size: int
) -> Iterator[tuple[Path, Tensor | UnreadableFile]]:
    if net.image_size is None:
        raise ValueError("this model does not say what size its images had: train it with 'tigranet train'")
    files = read_letterboxed(paths, net.image_size, color=net.in_maps > 1)
    while batch := list(islice(files, batch_size)):
        readable = [image for _, image in batch if isinstance(image, Tensor) and image.shape[0] == net.in_maps]
        with torch.inference_mode():
            computed: Iterator[Tensor] = iter(compute(torch.stack(readable)) if readable else [])
        for path, image in batch:
            if isinstance(image, UnreadableFile):
                yield path, image
            elif image.shape[0] != net.in_maps:
                yield path, UnreadableFile(path, f"has {image.shape[0]} channels, the model reads {net.in_maps}")
            else:
                yield path, next(computed)
