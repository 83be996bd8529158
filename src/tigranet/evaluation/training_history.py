"""The curve of a training: losses and validation accuracies by epoch, read from the table beside the checkpoints."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from tigranet.json_file import read_limited
from tigranet.quoted_text import shorten

COLUMNS = ("loss", "validation_loss", "validation_accuracy", "seconds")
"""Columns of the table after the number of the epoch. A cell may be empty."""
MAX_HISTORY_BYTES = 4_000_000
"""Largest file, enough for 50,000 epochs."""


@dataclass(frozen=True)
class TrainingHistory:
    """What was logged during a training. Values that are not finite are left out."""

    epochs: tuple[int, ...]
    """Numbers of the epochs."""
    losses: tuple[float, ...]
    """Mean training loss of each of ``epochs``."""
    validation_epochs: tuple[int, ...]
    """Numbers of the epochs after which validation images were measured."""
    validation_losses: tuple[float, ...]
    """Loss on the validation images after each of ``validation_epochs``."""
    validation_accuracies: tuple[float, ...]
    """Accuracy on the validation images in per cent after each of ``validation_epochs``."""
    seconds: float
    """Duration of all epochs together."""


def read_training_history(path: Path) -> TrainingHistory:
    """Read ``history.csv``, a file that a user may have changed.

    Args:
        path: Path of the file.

    Returns:
        The curve.

    Raises:
        ValueError: If the file is too large, or is not such a table.
        OSError: If the file cannot be read.
    """
    text = read_limited(path, MAX_HISTORY_BYTES).decode(errors="replace")
    rows: list[tuple[int, float, float, float, float]] = []
    try:
        for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
            try:
                cells = (row.get(name) for name in COLUMNS)
                loss, validation_loss, accuracy, seconds = (float(cell) if cell else math.nan for cell in cells)
                rows.append((int(row["epoch"]), loss, validation_loss, accuracy, seconds))
            except (KeyError, TypeError, ValueError):
                raise ValueError(f"line {number}: expected an epoch and numbers, got {shorten(str(row))}") from None
    except (csv.Error, ValueError) as error:
        raise ValueError(f"'{path}' is not the table of a training: {error}") from None
    trained = [(row[0], row[1]) for row in rows if math.isfinite(row[1])]
    if not trained:
        raise ValueError(f"'{path}' is not the table of a training: it has no losses")
    validated = [row for row in rows if math.isfinite(row[2]) and math.isfinite(row[3])]
    return TrainingHistory(
        epochs=tuple(epoch for epoch, _ in trained),
        losses=tuple(loss for _, loss in trained),
        validation_epochs=tuple(row[0] for row in validated),
        validation_losses=tuple(row[2] for row in validated),
        validation_accuracies=tuple(100 * row[3] for row in validated),
        seconds=math.fsum(row[4] for row in rows if math.isfinite(row[4])),
    )
