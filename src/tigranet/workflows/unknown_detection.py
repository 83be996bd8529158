"""The detector of unknown images of a saved network: fitted to its images, and stored in ``unknown.safetensors``."""

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, float64, tensor

from tigranet.atomic_files import atomic_binary_write
from tigranet.data import LabelledImages
from tigranet.evaluation.unknown.contrast import ContrastRange
from tigranet.evaluation.unknown.distance_and_probability import DistanceAndProbability
from tigranet.evaluation.unknown.known_scores import MAX_SCORES, MIN_SCORES, KnownScores, check_share
from tigranet.evaluation.unknown.novelty import DEFAULT_SHARE, NoveltyDetector, UnknownImages
from tigranet.json_file import read_limited
from tigranet.model import TIGraNet
from tigranet.model_folder import UNKNOWN_DETECTOR
from tigranet.safetensors_header import StoredTensor, read_safetensors_header
from tigranet.stored_weights import is_finite
from tigranet.workflows.model_calibration import model_folder, weights_checksum

METHOD = "Mahalanobis distances of logarithmic moments, and probability; version 1"
"""Description of the scores in the file. Another method would need other tensors."""
MAX_DETECTOR_BYTES = 12_000_000
"""Largest file, enough for the largest detector."""
SCORES, CONTRASTS = "scores", "contrasts"
"""Names of the tensors in double precision: the scores of the validation images, and the median and the minimum of the
contrasts of known images."""
POSITIVE = ("mean_variances", "variances", "other_variance", "score_deviations", CONTRASTS)
"""Tensors that the scores divide by, or take the logarithm of."""
AUTO, OFF = "auto", "off"
"""To detect unknown images if the model has a detector, and not to detect them."""


def fit_unknown_detector(
    network: TIGraNet, train: LabelledImages, validation: LabelledImages, console: Console | None = None
) -> NoveltyDetector | None:
    """Fit a detector of unknown images to a network.

    Args:
        network: The network; it computes on the device that it is on.
        train: Its training images.
        validation: Images that it was not trained on.
        console: Where to show progress, and why there is no detector.

    Returns:
        The detector, or None if there are too few images or too many classes.
    """
    if len(validation.labels) < MIN_SCORES:
        return None
    try:
        with console.status("fitting the detector of unknown images") if console else nullcontext():
            return NoveltyDetector.fit(network, train, validation)
    except ValueError as error:
        if console:
            console.print(f"no detector of unknown images: {error}", markup=False, soft_wrap=True)
        return None


def write_unknown_detector(folder: Path, network: TIGraNet, detector: NoveltyDetector | None) -> None:
    """Write ``unknown.safetensors`` to the folder of a saved model. A reader never finds half a file.

    The file has a checksum of the weights, so that it is not used with other weights.

    Args:
        folder: The folder of the model.
        network: The network that the detector was fitted to.
        detector: The detector. None deletes the file of an earlier model in this folder.
    """
    path = folder / UNKNOWN_DETECTOR
    if detector is None:
        path.unlink(missing_ok=True)
        return
    tensors = detector.detector.to_tensors()
    tensors[SCORES] = tensor(detector.known.scores, dtype=float64)
    tensors[CONTRASTS] = tensor([detector.contrast.median, detector.contrast.lowest], dtype=float64)
    metadata = {"method": METHOD, "weights_sha256": weights_checksum(network)}
    with atomic_binary_write(path) as file:
        file.write(save(tensors, metadata))


def read_unknown_detector(model: str | Path, network: TIGraNet) -> NoveltyDetector | None:
    """Read the detector of unknown images of a saved model.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.

    Returns:
        The detector, or None if there is none: the model was trained by an earlier version, or without validation
        images.

    Raises:
        ValueError: If the file is damaged, or if it belongs to other weights.
        OSError: If the file cannot be read.
    """
    path = model_folder(model) / UNKNOWN_DETECTOR
    if not path.exists():
        return None
    try:
        content = read_limited(path, MAX_DETECTOR_BYTES)
        header = read_safetensors_header(path)
        if header.metadata.get("method") != METHOD:
            raise ValueError(f"expected the method '{METHOD}'")
        checksum = header.metadata.get("weights_sha256", "")
        if not re.fullmatch("[0-9a-f]{64}", checksum):
            raise ValueError("expected weights_sha256 to be 64 hexadecimal digits")
        _check_shapes(header.tensors, network)
        tensors = load(content)
        _check_values(tensors)
        scores = KnownScores(tuple(tensors[SCORES].tolist()))
        contrast = ContrastRange(*tensors[CONTRASTS].tolist())
    except (ValueError, SafetensorError) as error:
        raise ValueError(
            f"'{path}' is not a detector of unknown images: {error}; 'tigranet calibrate' fits it again"
        ) from None
    if checksum != weights_checksum(network):
        raise ValueError(f"'{path}' belongs to other weights than those beside it: 'tigranet calibrate' fits it again")
    return NoveltyDetector(DistanceAndProbability.from_tensors(tensors), scores, contrast)


def load_unknown_images(
    model: str | Path, network: TIGraNet, unknown: str | float = AUTO, console: Console | None = None
) -> UnknownImages | None:
    """Load what the detection of unknown images needs.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.
        unknown: ``off``; the share of images of known classes to accept, such as 0.95; or ``auto``, which accepts
            :data:`~tigranet.evaluation.unknown.novelty.DEFAULT_SHARE` if the model has a detector, and detects nothing
            if it has none.
        console: Where to print what the user must know about a share that is given. For ``auto``, the training said it.

    Returns:
        The detector with the share, or None if unknown images are not detected.

    Raises:
        ValueError: If the share is not between 0 and 1, if the file is damaged, or if a share is given and the model
            has no detector.
    """
    share = parse_unknown(unknown)
    if share is None:
        return None
    detector = read_unknown_detector(model, network)
    if detector is None:
        if unknown == AUTO:
            return None
        raise ValueError(
            f"'{model}' has no {UNKNOWN_DETECTOR}, which the detection of unknown images needs: 'tigranet calibrate' "
            "fits it to images of the classes, and 'tigranet train' writes it if there are validation images"
        )
    if console and unknown != AUTO and (notice := detector.known.notice(share)):
        console.print(notice, markup=False, soft_wrap=True)
    return UnknownImages(detector, share)


def detects_unknown(model: str | Path, unknown: str | float = AUTO) -> bool:
    """Return whether predictions have a novelty.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        unknown: As for :func:`load_unknown_images`.

    Returns:
        False for ``off``, and for ``auto`` if the model has no detector.

    Raises:
        ValueError: If ``unknown`` is not valid.
    """
    if parse_unknown(unknown) is None:
        return False
    return unknown != AUTO or (model_folder(model) / UNKNOWN_DETECTOR).exists()


def parse_unknown(unknown: str | float) -> float | None:
    """Return the share of images of known classes to accept.

    Args:
        unknown: ``auto``, ``off``, or a share, also as text.

    Returns:
        The share, or None for ``off``.

    Raises:
        ValueError: If it is something else.

    Example:
        >>> parse_unknown("auto"), parse_unknown("off"), parse_unknown("0.9")
        (0.95, None, 0.9)
    """
    if unknown == OFF:
        return None
    if unknown == AUTO:
        return DEFAULT_SHARE
    try:
        return check_share(float(unknown))
    except (TypeError, ValueError):
        raise ValueError(
            f"expected unknown to be '{AUTO}', '{OFF}', or the share of known images to accept, between 0 and 1, such "
            f"as 0.95, got {unknown!r}"
        ) from None


def _check_shapes(stored: Mapping[str, StoredTensor], network: TIGraNet) -> None:
    """Check names, types and shapes of the tensors before they are read."""
    features = network.num_features
    sizes = {
        "mean_variances": (features // 2,),
        "feature_centres": (features,),
        "feature_factors": (features,),
        "class_means": ("classes", features),
        "directions": ("directions", features),
        "variances": ("directions",),
        "other_variance": (),
        "discriminants": ("discriminants", features),
        "score_centres": (3,),
        "score_deviations": (3,),
        SCORES: ("scores",),
        CONTRASTS: (2,),
    }
    if stored.keys() != sizes.keys():
        names = ", ".join(sorted(sizes))
        raise ValueError(f"expected the tensors {names}")
    limits = {
        "classes": (1, network.num_classes),
        "directions": (1, features),
        "discriminants": (0, features),
        "scores": (MIN_SCORES, MAX_SCORES),
    }
    known_sizes: dict[str, int] = {}
    for name, shape in sizes.items():
        actual = stored[name].shape
        dtype = "F64" if name in (SCORES, CONTRASTS) else "F32"
        expected = tuple(
            known_sizes.setdefault(size, actual[axis] if axis < len(actual) else 0) if isinstance(size, str) else size
            for axis, size in enumerate(shape)
        )
        if stored[name].dtype != dtype or actual != expected:
            raise ValueError(f"expected '{name}' in {dtype} of shape {expected}, got {stored[name].dtype} of {actual}")
    for size, (least, most) in limits.items():
        if not least <= known_sizes[size] <= most:
            raise ValueError(f"expected {least} to {most:,} {size}, got {known_sizes[size]:,}")


def _check_values(tensors: Mapping[str, Tensor]) -> None:
    """Check that the numbers are finite, and that the scores divide by positive numbers."""
    for name, values in tensors.items():
        if not is_finite(values):
            raise ValueError(f"expected finite numbers in '{name}'")
        if name in POSITIVE and not bool((values > 0).all()):
            raise ValueError(f"expected positive numbers in '{name}'")
