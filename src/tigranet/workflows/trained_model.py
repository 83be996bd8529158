"""What a training returns: the network, and everything that was measured of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tigranet.data import DataSet, UnreadableFile
from tigranet.evaluation.unknown.novelty import NoveltyDetector
from tigranet.model import TIGraNet
from tigranet.workflows.cross_validation import CrossValidation
from tigranet.workflows.first_answer import Comparison, FirstAnswer
from tigranet.workflows.larger_network import LargerNetwork
from tigranet.workflows.measured_training import TrainingResult
from tigranet.workflows.model_calibration import ModelCalibration
from tigranet.workflows.paper_results import PaperResult


@dataclass(frozen=True)
class TrainedModel:
    """A trained network, and everything that was measured of it."""

    network: TIGraNet
    """On the CPU, in evaluation mode."""
    data: DataSet
    """The data set that it was trained and measured on."""
    result: TrainingResult
    """Accuracies, recipe and duration."""
    record: Mapping[str, Any]
    """The result and the origin of the data as plain values, as in ``training.json``, without the content hashes."""
    folder: Path | None = None
    """The output folder, if the model was saved."""
    picture: Path | None = None
    """The picture in the output folder, if it was drawn: of test images, or of validation images if there are none."""
    unreadable_files: tuple[UnreadableFile, ...] = ()
    """Files that could not be read, with the reasons."""
    calibration: ModelCalibration | None = None
    """The calibration on validation images, which label sets need; None if there are no validation images."""
    unknown_detector: NoveltyDetector | None = None
    """The detector of unknown images, fitted to training images and calibrated on validation images."""
    first: FirstAnswer | None = None
    """The linear classifier on invariant features, if one was fitted. With ``quick`` it is the model."""
    comparison: Comparison | None = None
    """The accuracies of the trained network and of that classifier on the same images."""
    cross_validation: CrossValidation | None = None
    """The accuracies of a cross-validation, if one was asked for."""
    larger: LargerNetwork | None = None
    """The larger network that was trained after the first one, if any, and whether it is the model."""
    paper: PaperResult | None = None
    """The paper's accuracies on this data set, if the network is one of the presets."""
