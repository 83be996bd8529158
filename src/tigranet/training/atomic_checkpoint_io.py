"""Write checkpoints such that a reader never finds half a file."""

from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from tigranet.atomic_files import atomic_binary_write


class AtomicCheckpointIO(TorchCheckpointIO):
    """Write each checkpoint to a temporary file in its own folder, and rename that file when it is complete.

    Lightning writes to the system's temporary folder and then moves the file. If that folder is on another file system,
    as it often is, moving means copying, and a process that is killed meanwhile leaves an incomplete checkpoint in the
    place of the previous one.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint.

        Args:
            checkpoint: State of the training.
            path: Path of the file. Its folder is created if it does not exist.
            storage_options: Must be None.

        Raises:
            TypeError: If ``storage_options`` are given.
            OSError: If the file cannot be written.
        """
        if storage_options is not None:
            raise TypeError(f"expected no storage options, got {storage_options!r}")
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_binary_write(target) as file:
            torch.save(checkpoint, file)
