"""The names of the files in the folder of a trained or a partly trained model."""

import os
from pathlib import Path

CONFIG = "config.json"
"""The arguments of the network's constructor."""
WEIGHTS = "model.safetensors"
"""The parameters and buffers of the network."""
CALIBRATION = "calibration.json"
"""The calibration of the network on validation images, which label sets need. Models of earlier versions have none."""
UNKNOWN_DETECTOR = "unknown.safetensors"
"""The detector of images that show none of the classes. Models of earlier versions have none."""
CHECKPOINTS = "checkpoints"
"""Sub-folder with the checkpoints of the training."""
LARGER = "larger"
"""Sub-folder of ``checkpoints`` with those of a larger network, which was trained after the first one."""
LAST_CHECKPOINT = "last.ckpt"
"""The most recent checkpoint, in the sub-folder ``checkpoints``."""
FOLDS = "folds"
"""Sub-folder with what a cross-validation has measured."""
FOLD_RESULTS = "folds.json"
"""The results of the finished folds, in the sub-folder ``folds``."""
HISTORY = "history.csv"
"""The losses of each epoch, in the sub-folder ``checkpoints``."""


def is_saved_model(path: Path) -> bool:
    """Whether a folder holds a saved model.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if the configuration and the weights are files.
    """
    # os.path.isfile is False, not an error, in a folder that the user may not read.
    return os.path.isfile(path / CONFIG) and os.path.isfile(path / WEIGHTS)


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds a saved model, or the checkpoints of a training that has not finished.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if the configuration and the weights are files, or the most recent checkpoint or the results of folds are.
    """
    return is_saved_model(path) or is_interrupted_training(path)


def is_interrupted_training(path: Path) -> bool:
    """Whether a folder holds something that an interrupted training can continue from.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if the most recent checkpoint, or the results of a cross-validation, are a file.
    """
    return os.path.isfile(path / CHECKPOINTS / LAST_CHECKPOINT) or os.path.isfile(path / FOLDS / FOLD_RESULTS)


def is_begun_training(path: Path) -> bool:
    """Whether a folder was left by a training that was stopped before it wrote its most recent checkpoint.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if there is nothing but a folder for checkpoints, in which there are no other files.
    """
    names = _visible_names(path / CHECKPOINTS)
    has_no_other_files = names is not None and all(name.endswith(".ckpt") for name in names)
    return has_no_other_files and _visible_names(path) == [CHECKPOINTS]


def _visible_names(path: Path) -> list[str] | None:
    try:
        return [name for name in os.listdir(path) if not name.startswith(".")]
    except OSError:
        return None
