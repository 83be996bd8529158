"""What a network says of image files: any number of them, a few in memory at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from tigranet.data.image_folder import Broken, read_framed
from tigranet.model import TIGraNet

UNKNOWN = "unknown"
Files = Iterator[tuple[Path, Tensor | Broken]]


@dataclass(frozen=True)
class Answer:
    """The most probable class of one image, or ``unknown`` where its probability is too low."""

    path: str
    label: str
    probability: float


def answers(
    net: TIGraNet, paths: Iterable[Path], reject: float = 0.0, batch_size: int = 64
) -> Iterator[Answer | Broken]:
    """An answer to each file, in order; a file that cannot be read is answered with the reason.

    Images are brought to the size that ``net`` was trained on. Below the probability ``reject`` the label is 'unknown'.
    """
    if net.image_size is None:
        raise ValueError("this model does not say what size its images had: train it with 'tigranet train'")
    if not 0 <= reject <= 1:
        raise ValueError(f"reject is a probability in [0, 1], got {reject}")
    files = _fitting(read_framed(paths, net.image_size, color=net.in_maps > 1), net.in_maps)
    while batch := list(islice(files, batch_size)):
        readable = [image for _, image in batch if not isinstance(image, Broken)]
        with torch.inference_mode():
            probabilities = iter(net(torch.stack(readable)).softmax(1) if readable else [])
        for path, image in batch:
            if isinstance(image, Broken):
                yield image
                continue
            probability, label = next(probabilities).max(0)
            known = float(probability) >= reject
            yield Answer(str(path), net.class_names[int(label)] if known else UNKNOWN, round(float(probability), 6))


def _fitting(files: Files, in_maps: int) -> Files:
    """The same, but an image of other channels than the network reads is broken."""
    for path, image in files:
        if isinstance(image, Broken) or image.shape[0] == in_maps:
            yield path, image
        else:
            yield path, Broken(path, f"has {image.shape[0]} channels, the model reads {in_maps}")
