"""The calibration of a saved network: measured on validation images, and stored in ``calibration.json``."""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from tigranet.atomic_files import atomic_write
from tigranet.data import LabelledImages
from tigranet.evaluation.batched_inference import apply_in_batches
from tigranet.evaluation.calibration import fit_temperature
from tigranet.evaluation.canonical_logits import canonical_logits
from tigranet.evaluation.conformal import MAX_SCORES, ConformalCalibration
from tigranet.evaluation.moved_logits import BATCH_SIZE
from tigranet.json_file import read_json_object
from tigranet.model import TIGraNet
from tigranet.model_folder import CALIBRATION
from tigranet.pretrained import SHIPPED_FOLDER, shipped

MAX_CALIBRATION_BYTES = 4_000_000
"""Largest file, enough for the largest number of scores."""
SCORE = "minus the logarithm of the probability of the true class"
"""Description of the scores in the file. Other scores would need other label sets."""


@dataclass(frozen=True)
class ModelCalibration:
    """What was measured on validation images of a network, so that its answers come with guarantees."""

    conformal: ConformalCalibration
    """The scores from which label sets of any coverage are computed."""
    temperature: float = 1.0
    """The temperature with which the probabilities are right on average, see
    :func:`~tigranet.evaluation.calibration.fit_temperature`."""
    selected_weights: bool = False
    """Whether the same images selected the weights of the network, by ``keep="best"`` or ``patience``. Then the
    coverage of label sets is approximate."""

    def describe(self) -> str:
        """Describe the calibration in one line.

        Returns:
            The number of images, the largest coverage that they allow, and the temperature.
        """
        images = self.conformal.images
        limit = f"label sets of coverage up to {images / (images + 1):.3g}"
        return f"calibrated on {images} validation images: {limit}, temperature {self.temperature:.3g}"

    def notices(self, coverage: float) -> list[str]:
        """Return what a user must know about label sets of this coverage.

        Args:
            coverage: The coverage.

        Returns:
            One sentence each; none if the guarantee holds as it is and the sets are informative.
        """
        sentences = [self.conformal.notice(coverage)]
        if self.selected_weights:
            sentences.append(
                "the validation images that calibrate the label sets have also selected the weights of the network, so "
                "the coverage on new images may be lower: train with --keep last and without --patience"
            )
        return [sentence for sentence in sentences if sentence]


def calibrate_network(
    network: TIGraNet, validation: LabelledImages, *, selected_weights: bool = False
) -> ModelCalibration | None:
    """Calibrate a network on validation images.

    Args:
        network: The network; it computes on the device that it is on.
        validation: Images that it was not trained on.
        selected_weights: Whether these images selected the weights.

    Returns:
        The calibration, or None without images.
    """
    if not len(validation.labels):
        return None
    logits = apply_in_batches(network, validation.images.split(BATCH_SIZE), canonical_logits(network))
    return ModelCalibration(
        ConformalCalibration.measure(logits, validation.labels),
        round(fit_temperature(logits, validation.labels), 4),
        selected_weights,
    )


def write_calibration(folder: Path, network: TIGraNet, calibration: ModelCalibration | None) -> None:
    """Write ``calibration.json`` to the folder of a saved model. A reader never finds half a file.

    The file has a checksum of the weights, so that it is not used with other weights.

    Args:
        folder: The folder of the model.
        network: The network that was calibrated.
        calibration: The calibration. None deletes the file of an earlier model in this folder.
    """
    path = folder / CALIBRATION
    if calibration is None:
        path.unlink(missing_ok=True)
        return
    values = {
        "score": SCORE,
        "images": calibration.conformal.images,
        "temperature": calibration.temperature,
        "selected_weights": calibration.selected_weights,
        "weights_sha256": weights_checksum(network),
        "scores": list(calibration.conformal.scores),
    }
    with atomic_write(path) as file:
        file.write(json.dumps(values) + "\n")


def read_calibration(model: str | Path, network: TIGraNet) -> ModelCalibration | None:
    """Read the calibration of a saved model.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.

    Returns:
        The calibration, or None if there is none: the model was trained by an earlier version, or without validation
        images.

    Raises:
        ValueError: If the file is damaged, or if it belongs to other weights.
    """
    path = model_folder(model) / CALIBRATION
    if not path.exists():
        return None
    values = read_json_object(path, MAX_CALIBRATION_BYTES, "a calibration")
    try:
        calibration, checksum = _parse(values)
    except ValueError as error:
        raise ValueError(f"'{path}' is not a calibration: {error}; 'tigranet calibrate' measures it again") from None
    if checksum != weights_checksum(network):
        raise ValueError(
            f"'{path}' belongs to other weights than those beside it: 'tigranet calibrate' measures it again"
        )
    return calibration


def require_calibration(
    model: str | Path, network: TIGraNet, coverage: float, console: Console | None = None
) -> ConformalCalibration:
    """Return what label sets of a saved model are calibrated on.

    Args:
        model: The folder of the model, or the name of a model that comes with the package.
        network: The network that was loaded from it.
        coverage: The coverage of the label sets.
        console: Where to print what the user must know about sets of this coverage.

    Returns:
        The scores of the validation images.

    Raises:
        ValueError: If the model has no calibration, if the file is damaged, or if ``coverage`` is not between 0 and 1.
    """
    calibration = read_calibration(model, network)
    if calibration is None:
        raise ValueError(
            f"'{model}' has no {CALIBRATION}, which label sets need: calibrate it on validation images with "
            "'tigranet calibrate', or train it again with validation images"
        )
    notices = calibration.notices(coverage)  # also without a console, because this checks the coverage
    if console:
        for notice in notices:
            console.print(notice, markup=False, soft_wrap=True)
    return calibration.conformal


def model_folder(model: str | Path) -> Path:
    """Return the folder of a saved model.

    Args:
        model: The folder itself, or the name of a model that comes with the package.

    Returns:
        The folder. It need not exist.
    """
    name = str(model).rstrip("/")
    return SHIPPED_FOLDER / name if name in shipped() and not Path(name).is_dir() else Path(model)


def _parse(values: dict[str, Any]) -> tuple[ModelCalibration, str]:
    """Check the values of the file, and return the calibration and the checksum of its weights."""
    if values.get("score") != SCORE:
        raise ValueError(f"expected score to be '{SCORE}'")
    images: Any = values.get("images")
    scores: Any = values.get("scores")
    temperature: Any = values.get("temperature")
    if not _is_number(images, int) or not 1 <= images <= MAX_SCORES:
        raise ValueError(f"expected images to be a whole number from 1 to {MAX_SCORES:,}")
    if not isinstance(scores, list) or not all(_is_number(score) and score >= 0 for score in scores):
        raise ValueError("expected scores to be a list of numbers that are not negative")
    if not _is_number(temperature) or temperature <= 0:
        raise ValueError("expected temperature to be a positive number")
    if not isinstance(values.get("selected_weights"), bool):
        raise ValueError("expected selected_weights to be true or false")
    checksum = values.get("weights_sha256")
    if not isinstance(checksum, str) or not re.fullmatch("[0-9a-f]{64}", checksum):
        raise ValueError("expected weights_sha256 to be 64 hexadecimal digits")
    conformal = ConformalCalibration(images, tuple(map(float, scores)))
    return ModelCalibration(conformal, float(temperature), values["selected_weights"]), checksum


def _is_number(value: Any, kind: Any = (int, float)) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)


def weights_checksum(network: TIGraNet) -> str:
    """Return a checksum of the weights. That of the file would not do: the same weights may give different files.

    Args:
        network: The network.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
