"""A progress bar for training: epochs, loss, validation accuracy and remaining time in one line."""

from typing import Any

import lightning as L
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class FitProgress(L.Callback):
    """Draw a progress bar over all steps of all epochs, with the loss and the validation accuracy.

    Args:
        console: The console to draw on.
    """

    def __init__(self, console: Console) -> None:
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=20),
            TextColumn("loss {task.fields[loss]}  validation {task.fields[accuracy]} "),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
        )
        self.task = TaskID(0)

    def on_train_start(self, trainer: L.Trainer, *_: Any) -> None:
        """Start the bar at the current step, which is not 0 when training is resumed.

        Args:
            trainer: The trainer that runs.
        """
        self.task = self.bar.add_task(
            "",
            total=int(trainer.estimated_stepping_batches),
            completed=trainer.global_step,
            epoch=f"{trainer.current_epoch}/{trainer.max_epochs}",
            loss="-",
            accuracy="-",
        )
        self.bar.start()

    def on_train_batch_end(self, *_: Any) -> None:
        """Advance the bar by one step."""
        self.bar.advance(self.task)

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Show the number of epochs, the loss and the validation accuracy.

        Args:
            trainer: The trainer that runs.
        """
        metrics = trainer.callback_metrics
        accuracy = f"{100 * float(metrics['validation_accuracy']):.1f} %" if "validation_accuracy" in metrics else "-"
        epoch = f"{trainer.current_epoch + 1}/{trainer.max_epochs}"
        self.bar.update(self.task, epoch=epoch, loss=f"{float(metrics['loss']):.4f}", accuracy=accuracy)

    def on_train_end(self, *_: Any) -> None:
        """Stop drawing."""
        self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        """Stop drawing when training fails or is interrupted."""
        self.bar.stop()
