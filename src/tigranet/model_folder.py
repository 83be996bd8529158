"""The names of the files in the folder of a trained or a partly trained model."""

from pathlib import Path

CONFIG = "config.json"
"""The arguments of the network's constructor."""
WEIGHTS = "model.safetensors"
"""The parameters and buffers of the network."""
CHECKPOINTS = "checkpoints"
"""Sub-folder with the checkpoints of the training."""
LAST_CHECKPOINT = "last.ckpt"
"""The most recent checkpoint, in the sub-folder ``checkpoints``."""


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds a saved model, or the checkpoint of a training that has not finished.

    Args:
        path: Path of the folder. It need not exist.

    Returns:
        True if the configuration and the weights exist, or the most recent checkpoint does.
    """
    is_saved = (path / CONFIG).exists() and (path / WEIGHTS).exists()
    return is_saved or (path / CHECKPOINTS / LAST_CHECKPOINT).exists()
