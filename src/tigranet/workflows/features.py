"""Compute the invariant statistics of image files with a saved network."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from tigranet.choices import InferencePrecision
from tigranet.data import UnreadableFile
from tigranet.devices import select_device
from tigranet.evaluation import feature_names, file_features
from tigranet.model import TIGraNet
from tigranet.workflows.image_paths import expand_paths, require_readable


@dataclass(frozen=True)
class ImageFeatures:
    """The features of one image file."""

    path: Path
    values: Float[Tensor, " statistics"]
    """On the CPU."""


@dataclass(frozen=True)
class FeatureResult:
    """The features of image files, as a table."""

    names: tuple[str, ...]
    """One for each column."""
    paths: tuple[Path, ...]
    """One for each row."""
    values: Float[Tensor, "images statistics"]
    """The features."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""


def features(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    device: str = "auto",
    precision: InferencePrecision = "32",
) -> FeatureResult:
    """Compute the invariant statistics of each image file, for any other classifier.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, folders and other sources of images, as for :func:`~tigranet.workflows.predict.predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.

    Returns:
        The features, and the files that could not be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
        ValueError: If no image could be read.
    """
    names, stream = stream_features(model, images, device=device, precision=precision)
    results = list(stream)
    rows = [result for result in results if isinstance(result, ImageFeatures)]
    return FeatureResult(
        tuple(names),
        tuple(row.path for row in rows),
        torch.stack([row.values for row in rows]),
        tuple(result for result in results if isinstance(result, UnreadableFile)),
    )


def stream_features(
    model: str | Path,
    images: str | Path | Iterable[str | Path],
    *,
    device: str = "auto",
    precision: InferencePrecision = "32",
) -> tuple[list[str], Iterator[ImageFeatures | UnreadableFile]]:
    """Compute the invariant statistics of any number of image files, with only a few of them in memory.

    The model is loaded, and the paths are checked, before the first features are asked for.

    Args:
        model: The folder of a saved model, or the name of a model that comes with the package.
        images: Image files, folders and other sources of images, as for :func:`~tigranet.workflows.predict.predict`.
        device: Where to compute, see :func:`tigranet.devices.select_device`.
        precision: Precision of the graph layers, see :meth:`tigranet.TIGraNet.compute_in`.

    Returns:
        The names of the features, and an iterator over the features in the order of the files. An unreadable file
        gives the reason instead. After the last file it raises ``ValueError`` if no image could be read.

    Raises:
        FileNotFoundError: If the model or an image does not exist.
    """
    selected = select_device(device)
    network = TIGraNet.from_pretrained(model)
    names = feature_names(network)
    results = (
        values if isinstance(values, UnreadableFile) else ImageFeatures(path, values.cpu())
        for path, values in file_features(network.to(selected).compute_in(precision), expand_paths(images))
    )
    return names, require_readable(results)
